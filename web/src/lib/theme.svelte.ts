/** Light or dark: as the system has it, unless the reader chose. */

import type { Theme } from './ink'

const STORED = 'regard.theme'

class Appearance {
  #system = $state<Theme>('light')
  #chosen = $state<Theme | null>(null)

  constructor() {
    const dark = matchMedia('(prefers-color-scheme: dark)')
    this.#system = dark.matches ? 'dark' : 'light'
    dark.addEventListener('change', () => (this.#system = dark.matches ? 'dark' : 'light'))
    try {
      const stored = localStorage.getItem(STORED)
      if (stored === 'light' || stored === 'dark') this.#chosen = stored
    } catch {
      // storage may be forbidden; then the choice lasts as long as the page
    }
  }

  get theme(): Theme {
    return this.#chosen ?? this.#system
  }

  toggle(): void {
    this.#chosen = this.theme === 'light' ? 'dark' : 'light'
    try {
      localStorage.setItem(STORED, this.#chosen)
    } catch {
      // as above
    }
  }
}

export const appearance = new Appearance()
