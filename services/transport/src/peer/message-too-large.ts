import { ServeError } from '@tutti/errors'

/** A message that the broker would refuse, said before it is sent; no other replica would get it either. */
export function messageTooLarge(
  type: string,
  to: string,
  sizeBytes: number,
  capBytes: number,
): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `${type} of ${sizeBytes} bytes on the way to peer '${to}', the broker takes at most ${capBytes}`,
    { details: { replica: to } },
  )
}
