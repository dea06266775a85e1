/** A page for a whole class: all is drawn larger, what is read is one line, and controls come when they are asked for. */

/** CSS pixels that are shown, however large the screen is: to a class, and to one reader. */
const [WIDE, HIGH] = [1100, 619]
const USUAL = 1600

class Classroom {
  on = $state(false)
  /** How much larger than usual all is drawn. */
  scale = $state(1)
  /** The sentence and what comes of it are open. */
  reading = $state(false)
  /** So are the controls. */
  controls = $state(false)

  fit(width: number, height: number): void {
    this.scale = Math.max(1, this.on ? Math.min(width / WIDE, height / HIGH) : width / USUAL)
  }
}

export const classroom = new Classroom()
