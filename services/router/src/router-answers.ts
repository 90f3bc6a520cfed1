import { type PinnedVersion, parseWire } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import type { AnswerQuestion } from '@tutti/transport'
import { z } from 'zod'

const Ready = z.object({ model: z.string(), version: z.string() })

/** `pins` is a list of [model, version, revision]. */
const Unpinned = z.object({
  replica: z.string(),
  pins: z.array(z.tuple([z.string(), z.number(), z.string()])),
})

/**
 * Makes the function that answers the questions of steps to a router: whether a model is ready, and which replaced versions are
 * unpinned.
 */
export function createRouterAnswers(o: {
  isModelReady(model: string, version: string): Promise<boolean>
  /** Tells whether no request can ask the replica for the version any longer. */
  isUnpinned(replica: string, pin: PinnedVersion): boolean
}): AnswerQuestion {
  return async (question, argument) => {
    const what = `question '${question}'`
    switch (question) {
      case 'ready': {
        const { model, version } = parseWire(what, Ready, argument)
        return await o.isModelReady(model, version)
      }
      case 'unpinned': {
        const { replica, pins } = parseWire(what, Unpinned, argument)
        return pins.map(([model, version, revision]) =>
          o.isUnpinned(replica, { model, version, revision }),
        )
      }
      case 'describe':
      case 'statistics':
        break
    }
    throw new ServeError('UNSUPPORTED', `${what} is not for a router`)
  }
}
