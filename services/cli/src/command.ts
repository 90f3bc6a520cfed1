import type { Surroundings } from '@tutti/chassis'

/** A command of `tutti`. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly description: string
  /** @returns the exit code. @throws ServeError; FLAG_INVALID for what was not understood. */
  run(argv: readonly string[], around: Surroundings): Promise<number>
}
