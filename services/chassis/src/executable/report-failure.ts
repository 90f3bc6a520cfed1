import { helpAddress, ServeError } from '@tutti/errors'
import { z } from 'zod'
import type { ResultFormat } from '../flags/result-format.ts'
import { printable } from '../text/printable.ts'
import { renderJsonLine } from '../text/render-json.ts'

/** Where a command tells its errors. */
export interface ErrorOutput {
  /** Writes to standard error. */
  err(text: string): void
  /** Text if absent. JSON: one line for each error. */
  readonly errorFormat?: ResultFormat
}

/** An error of a command whose results are JSON, as one line of standard error. */
export const ErrorResult = z
  .object({
    error: z.object({
      reason: z.string().meta({ description: 'In capitals, such as MODEL_NOT_FOUND.' }),
      code: z.string().meta({ description: 'Status code of gRPC, such as NOT_FOUND.' }),
      message: z.string(),
      help: z.url().optional().meta({
        description:
          'Where it stands what the reason means and what to do. Absent for errors of other programs, such as an API server.',
      }),
    }),
  })
  .meta({ title: 'Error of a command of tutti' })
type ErrorResult = z.infer<typeof ErrorResult>

/**
 * Tells the user of an error: a text in a line that begins with `program`, or JSON.
 *
 * @param o.isOfOthers - it is an error of another program: Tutti has no page about it.
 */
export function reportProblem(
  program: string,
  error: Error,
  output: ErrorOutput,
  o: { readonly isOfOthers?: boolean } = {},
): void {
  if (output.errorFormat !== 'json') {
    // The text may be a server's.
    const lines = error.message.split('\n').map(printable)
    return output.err(`${program}: ${lines.join('\n')}\n`)
  }
  const { reason, code, message } = ServeError.from(error)
  const help = o.isOfOthers === true ? {} : { help: helpAddress(reason) }
  const result: ErrorResult = { error: { reason, code, message, ...help } }
  output.err(renderJsonLine(result))
}

const FAILED = 1
const USAGE_ERROR = 2

/**
 * Tells the user of an error that ended a command before it served, and where to read on. Of a command line the text says all.
 *
 * @param program - what the line begins with.
 * @returns the exit code: 2 if the command line was not understood, else 1.
 */
export function reportFailure(program: string, error: unknown, output: ErrorOutput): number {
  const failure = ServeError.from(error)
  reportProblem(program, failure, output)
  if (failure.reason === 'FLAG_INVALID') return USAGE_ERROR
  if (output.errorFormat !== 'json') output.err(`see ${helpAddress(failure.reason)}\n`)
  return FAILED
}
