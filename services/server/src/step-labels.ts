/** Names one step of one ensemble in the metrics; a request to the model itself has neither ensemble nor step. */
export interface StepLabels {
  readonly ensemble: string
  readonly step: string
  readonly model: string
}

/** Where the time of the call of a step went, in nanoseconds. */
export interface StepParts {
  /** The transfer of both ways. */
  readonly transferNs: number
  readonly queueNs: number
  readonly computeNs: number
}
