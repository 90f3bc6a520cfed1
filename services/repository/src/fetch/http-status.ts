import { type Reason, ServeError } from '@tutti/errors'
import { TransientFailure } from './attempts.ts'
import type { HttpAnswer } from './http-get.ts'
import { showUri } from './source-uri.ts'

const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])
const REASONS: Readonly<Record<number, Reason>> = {
  401: 'ARTIFACT_DENIED',
  403: 'ARTIFACT_DENIED',
  404: 'ARTIFACT_NOT_FOUND',
  410: 'ARTIFACT_NOT_FOUND',
}

/**
 * What an answer amounts to that does not bring what was asked for. Its body is not read any more.
 *
 * @param said - what the server says of it, e.g. S3's code.
 */
export function toStatusFailure(answer: HttpAnswer, said = ''): ServeError | TransientFailure {
  const { status, headers, url, body } = answer
  body.destroy()
  const text = `'${showUri(url)}' answered ${status}${said === '' ? '' : `, ${said}`}`
  const failure = new ServeError(REASONS[status] ?? 'ARTIFACT_UNAVAILABLE', text)
  if (!TRANSIENT.has(status)) return failure
  return new TransientFailure(failure, toMilliseconds(headers['retry-after']))
}

/** Seconds; a date is not worth a clock that may differ. */
function toMilliseconds(retryAfter: string | undefined): number {
  return /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) * 1000 : 0
}
