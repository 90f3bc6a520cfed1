import type { ServeError } from '@tutti/errors'
import type { ResponseSink } from './execution.ts'

/** Passes everything on to `sink`, and calls `end` before the final response or the failure, with its error. */
export function endingSink(sink: ResponseSink, end: (error?: ServeError) => void): ResponseSink {
  return {
    send: (response) => {
      if (response.final) end()
      sink.send(response)
    },
    fail: (error, executed, times) => {
      end(error)
      sink.fail(error, executed, times)
    },
    ready: () => sink.ready?.(),
  }
}
