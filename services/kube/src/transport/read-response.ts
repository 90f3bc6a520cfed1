import type { IncomingMessage } from 'node:http'
import { noAnswer } from '../kube-error.ts'
import type { Exchange } from './exchange.ts'

/** Lists are read in pages, so that nothing comes near this. */
const LONGEST_BODY_BYTES = 256 * 1024 * 1024

/** Reads an answer to its end. @throws KubeError, or the error with which the exchange was aborted. */
export async function readBodyText(exchange: Exchange, response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of response) {
      if (!Buffer.isBuffer(piece)) continue
      pieces.push(piece)
      bytes += piece.length
      if (bytes > LONGEST_BODY_BYTES) {
        throw noAnswer('BadResponse', `the answer has more than ${LONGEST_BODY_BYTES} bytes`)
      }
    }
  } catch (error) {
    throw exchange.toError(error)
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** Parses a JSON body; undefined if it is empty. @param title - the request, for errors. @throws KubeError `BadResponse`. */
export function parseJsonBody(title: string, text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw noAnswer('BadResponse', `${title}: the answer is no JSON`, error)
  }
}
