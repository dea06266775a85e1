/** A page for a whole class: all is drawn larger, what is read is one line, and controls come when they are asked for. */

/** CSS pixels of the window that is shown, however large the screen is. */
const [WIDE, HIGH] = [1100, 619]

class Classroom {
  on = $state(false)
  /** How much larger than elsewhere all is drawn. */
  scale = $state(1)
  /** The sentence and what comes of it are open. */
  reading = $state(false)
  /** So are the controls. */
  controls = $state(false)

  fit(width: number, height: number): void {
    this.scale = this.on ? Math.max(1, Math.min(width / WIDE, height / HIGH)) : 1
  }
}

export const classroom = new Classroom()
