/** The key, where the server needs one: kept as long as the tab is open, and nowhere else. */

const STORED = 'regard.key'

class Key {
  value = $state('')
  /** The server wants one, or another one. */
  refused = $state(false)

  constructor() {
    try {
      this.value = sessionStorage.getItem(STORED) ?? ''
    } catch {
      // storage may be forbidden; then the key lasts as long as the page
    }
  }

  set(value: string): void {
    this.value = value
    this.refused = false
    try {
      sessionStorage.setItem(STORED, value)
    } catch {
      // as above
    }
  }
}

export const key = new Key()
