import { helpAddress, ServeError } from '@tutti/errors'
import { z } from 'zod'
import type { ResultFormat } from '../flags/result-format.ts'
import { printable } from '../text/printable.ts'
import { renderJsonLine } from '../text/render-json.ts'

/** Standard error of a command, and the format of its errors. */
export interface ErrorOutput {
  /** Writes to standard error. */
  err(text: string): void
  /** Format of errors; text if absent. An error in JSON takes one line. */
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
 * Writes an error to standard error: as text that begins with `program`, or as one line of JSON.
 *
 * @param o.isOfOthers - true for an error of another program, which Tutti's error pages do not explain.
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
 * Writes an error that ended a command before it served. An address to read on follows, except for an error in the command line,
 * which explains itself.
 *
 * @param program - name that the line begins with.
 * @returns the exit code: 2 if the command line was not understood, else 1.
 */
export function reportFailure(program: string, error: unknown, output: ErrorOutput): number {
  const failure = ServeError.from(error)
  reportProblem(program, failure, output)
  if (failure.reason === 'FLAG_INVALID') return USAGE_ERROR
  if (output.errorFormat !== 'json') output.err(`see ${helpAddress(failure.reason)}\n`)
  return FAILED
}
