import { parentPort } from 'node:worker_threads'
import { bug, ServeError } from '@tutti/errors'
import { jsonNeeds } from '@tutti/protocol'
import { BODY_PARSERS, jsonBytes } from './body-parsers.ts'
import type { BodyAnswer, BodyJob } from './json-thread.ts'

/*
 * The thread that parses large bodies: one after the other, as they are sent to it. It first says what a body takes, and parses
 * it once it is told to.
 */

if (parentPort === null) throw bug('json-worker is started as a thread')
const port = parentPort
let job: BodyJob | undefined

port.on('message', (message: BodyJob | 'parse' | 'drop') => {
  if (message === 'drop') job = undefined
  else if (message !== 'parse') {
    job = message
    const { source } = message
    port.postMessage({ needs: jsonNeeds(source.body.subarray(0, jsonBytes(source))) })
  } else if (job !== undefined) {
    const { kind, source } = job
    job = undefined
    const answer = answerOf(kind, source)
    port.postMessage(answer, ownBuffers(answer, source.body))
  }
})

function answerOf(kind: BodyJob['kind'], source: BodyJob['source']): BodyAnswer {
  try {
    return { parsed: BODY_PARSERS[kind](source) }
  } catch (error) {
    const { reason, code, message, details } = ServeError.from(error)
    return { refusal: { reason, code, message, details } }
  }
}

/** The memory that goes along instead of being copied: whole buffers of tensors and files, and the body that others view. */
function ownBuffers({ parsed }: BodyAnswer, body: Uint8Array): ArrayBuffer[] {
  const buffers = viewsOf(parsed)
    .filter((view) => view.byteLength === view.buffer.byteLength || view.buffer === body.buffer)
    .map((view) => view.buffer)
    .filter((buffer) => buffer instanceof ArrayBuffer)
  return [...new Set(buffers)]
}

function viewsOf(parsed: BodyAnswer['parsed']): readonly Uint8Array[] {
  if (typeof parsed !== 'object') return []
  return 'inputs' in parsed ? parsed.inputs.map(({ data }) => data) : [...parsed.files.values()]
}
