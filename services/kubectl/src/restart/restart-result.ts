import { renderJson } from '@tutti/chassis'
import { readonlyListOf } from '@tutti/command-line/results'
import { z } from 'zod'
import type { Ended, Restarted } from './follow-rollouts.ts'

const RestartedDeployment = z.object({
  deployment: z.string(),
  models: readonlyListOf(z.string()).meta({
    description: 'The Models in its pods, by their names in the cluster; empty for the router.',
  }),
  state: z.enum(['started', 'done', 'failed', 'late']).meta({
    description:
      'started: nothing waited for its new pods. failed: it was refused, Kubernetes has given it up, its Deployment was deleted, or the API server did not say how it goes on. late: it goes on, and the time of --timeout is over.',
  }),
  message: z
    .string()
    .meta({ description: 'How far it came, and why no further; empty if started.' }),
})

/** Result that `kubectl tutti restart` prints as JSON. */
export const RestartResult = z
  .object({
    restarted: readonlyListOf(RestartedDeployment),
    missing: readonlyListOf(z.string()).meta({
      description: 'Models that steps of the Ensemble name and that are not there.',
    }),
  })
  .meta({ title: 'Result of kubectl tutti restart' })
type RestartResult = z.infer<typeof RestartResult>

/** A restarted Deployment, with its name and its Model. */
export interface RestartedPods extends Restarted {
  readonly deployment: string
  /** Names of the Models in its pods, in the cluster; empty for the router. */
  readonly models: readonly string[]
}

/**
 * Renders the result of `restart` as JSON.
 *
 * @param ended - the ends of refused and of watched restarts; others count as started.
 */
export function renderRestart(
  restarted: readonly RestartedPods[],
  missing: readonly string[],
  ended: readonly Ended[],
): string {
  const result: RestartResult = {
    restarted: restarted.map(({ uid, deployment, models }) => {
      const { state = 'started', message = '' } = ended.find((one) => one.uid === uid) ?? {}
      return { deployment, models: [...models], state, message }
    }),
    missing: [...missing],
  }
  return renderJson(result)
}
