import { ServeError } from '@tutti/errors'

/** Why a version is UNAVAILABLE, as the repository index prints it: `<Code>: <text>`, with Triton's code names (triton-semantics 3.5). */
export function loadReason(error: unknown): string {
  const { code, message } = ServeError.from(error)
  if (code === 'UNIMPLEMENTED') return `Unsupported: ${message}`
  const words = code.replaceAll('_', ' ')
  return `${words.charAt(0)}${words.slice(1).toLowerCase()}: ${message}`
}
