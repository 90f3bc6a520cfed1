import { defineFindings } from '@tutti/command-line/results'
import type { z } from 'zod'

/** Result that `kubectl tutti doctor` prints as JSON. */
export const ClusterDoctorResult = defineFindings('Result of kubectl tutti doctor', [
  'kubernetes',
  'custom resources',
  'operator',
  'nats',
  'namespace',
  'metrics',
  'devices',
  'exposure',
  'rights',
])
/** The result of one check of a cluster. */
export type ClusterFinding = z.infer<typeof ClusterDoctorResult>['findings'][number]
type Check = ClusterFinding['check']

/** Builds the note for a check that the user has no right for. @param refusal - the API server's text. */
export function unseen(check: Check, refusal: string | undefined): ClusterFinding {
  const mending = 'ask an administrator for this right, or to run kubectl tutti doctor'
  return { check, status: 'note', found: `not looked at: ${refusal}`, mending }
}
