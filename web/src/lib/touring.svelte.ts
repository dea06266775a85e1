/** Where the short tour is: it stands beside what it explains, and leaves with the view of heads. */

class Touring {
  /** The step that is shown, from 0; null: none. */
  at = $state<number | null>(null)
  /** A reader began it or went on, and reads on at the card. */
  read = $state(false)

  begin(read: boolean): void {
    this.at = 0
    this.read = read
  }

  go(step: number): void {
    this.at = step
    this.read = true
  }

  end(): void {
    this.at = null
  }
}

export const touring = new Touring()
