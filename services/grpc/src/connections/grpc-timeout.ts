import { ServeError } from '@tutti/errors'

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000001,
}

/**
 * Reads the `grpc-timeout` header: at most eight digits and a unit.
 *
 * @returns milliseconds, with a fraction for small units.
 * @throws ServeError MALFORMED_MESSAGE for anything else.
 */
export function parseGrpcTimeout(text: string): number {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? []
  const unitMs = UNIT_MS[unit]
  if (digits === undefined || unitMs === undefined) {
    throw new ServeError(
      'MALFORMED_MESSAGE',
      `grpc-timeout is '${text}', want one to eight digits and one of H, M, S, m, u, n`,
    )
  }
  return Number(digits) * unitMs
}
