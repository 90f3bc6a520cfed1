import {
  parseDescriptionJson,
  parseStatisticsJson,
  type StepControl,
  type StepDescription,
} from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { MemberQuestions } from '@tutti/transport'
import type { DescriptionLimit } from './description-limit.ts'

/** Never aborts: questions have a time of their own. */
const UNLIMITED = new AbortController().signal
/** A step gives its model 5 seconds for that. */
const READINESS_MS = 7000

/**
 * Asks a step over the broker what it serves.
 *
 * @param o.limit - bounds what is kept.
 * @throws ServeError, also if it answers for another replica.
 */
export async function describeStep(
  members: MemberQuestions,
  replica: string,
  o: { readonly signal: AbortSignal; readonly limit?: DescriptionLimit },
): Promise<StepDescription> {
  const answer = await members.ask(replica, 'describe', null, { signal: o.signal })
  o.limit?.take(replica, answer)
  const description = parseDescriptionJson(answer)
  if (description.replica === replica) return description
  throw new ServeError(
    'MALFORMED_MESSAGE',
    `step description: got replica "${description.replica}", want "${replica}"`,
    { details: { replica } },
  )
}

/** A step behind the broker, as the router asks it. */
export function remoteStep(members: Promise<MemberQuestions>, replica: string): StepControl {
  return {
    describe: async () => describeStep(await members, replica, { signal: UNLIMITED }),
    statistics: async (model, version) => {
      const argument = { model, version }
      const asked = await members
      return parseStatisticsJson(
        await asked.ask(replica, 'statistics', argument, { signal: UNLIMITED }),
      )
    },
    isReady: async (model, version) => {
      const argument = { model, version: String(version) }
      const asked = await members
      const o = { signal: UNLIMITED, timeoutMs: READINESS_MS }
      return (await asked.ask(replica, 'ready', argument, o)) === true
    },
  }
}
