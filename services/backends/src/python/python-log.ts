/** Who a line comes from. */
export interface LineOrigin {
  readonly model: string
  readonly version: string
  readonly instance: string
}

/** What the program of a model writes must not fill the log: 200 lines a second, 1000 at once; the rest is counted. */
export const MODEL_LINES = { lines: 1000, everyMs: 5 }
