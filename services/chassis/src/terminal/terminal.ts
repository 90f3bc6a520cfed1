/** A person's screen and keyboard. */
export interface Terminal {
  /** Takes over screen and keyboard until `Screen.close`. */
  openScreen(o: ScreenOptions): Screen
}

export interface ScreenOptions {
  /** Called for each key, with one character or one byte of a sequence. Ctrl-C is a key too. */
  readonly onKey: (key: string) => void
  readonly onResize: () => void
  /** Called when the terminal goes away. */
  readonly onEnd: () => void
}

export interface Screen {
  /** Returns the size in characters. */
  size(): { readonly columns: number; readonly rows: number }
  /** Replaces what is shown. @param lines - that fit, without control characters. */
  draw(lines: readonly string[]): void
  /** Gives the terminal back as it was. The end of the process does so too. */
  close(): void
}
