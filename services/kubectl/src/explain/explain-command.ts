import { ACCEPTED_LABEL } from '@tutti/api'
import { type FlagTable, printable, renderJson } from '@tutti/chassis'
import { KUBECTL_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import {
  Explanation,
  explainPlan,
  planAccepted,
  REQUESTED_OUTPUT_FLAG,
  renderExplanation,
} from '@tutti/command-line/explain'
import { ServeError } from '@tutti/errors'
import { CONTROLLER_REVISION, type Stored } from '@tutti/kube'
import { z } from 'zod'
import { CLUSTER_FLAGS, type Cluster, Reader, withCluster } from '../cluster.ts'
import type { EnsembleObject } from '../resources.ts'
import { findTarget } from '../targets.ts'
import { servedOf, unservedOf } from './served-ensemble.ts'

export const CLUSTER_EXPLAIN_FLAGS = {
  ...CLUSTER_FLAGS,
  'requested-output': REQUESTED_OUTPUT_FLAG,
  format: KUBECTL_FORMAT_FLAG,
} as const satisfies FlagTable

/** An Ensemble of a cluster, explained. */
const ClusterExplanation = Explanation.extend({
  served: z.object({ revision: z.string(), generation: z.int() }).meta({
    description:
      'What routers serve: the ControllerRevision, and the generation of the Ensemble that it was made of.',
  }),
  notServed: z
    .object({ generation: z.int(), reason: z.string(), message: z.string() })
    .optional()
    .meta({
      description: 'The Ensemble as it is written now, where that is not what routers serve.',
    }),
}).meta({ title: 'Result of kubectl tutti explain' })
type ClusterExplanation = z.infer<typeof ClusterExplanation>

export const explainClusterCommand = withFlags(
  {
    usage: 'kubectl tutti explain ENSEMBLE [FLAGS]',
    flags: CLUSTER_EXPLAIN_FLAGS,
    result: ClusterExplanation,
  },
  async ({ flags, positionals }, environment) => {
    const [text, ...more] = positionals
    if (text === undefined || more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} names, want one`)
    }
    const explanation = await withCluster(flags, environment, (cluster) =>
      explain(cluster, text, flags['requested-output']),
    )
    environment.out(flags.format === 'json' ? renderJson(explanation) : render(explanation))
    return 0
  },
)

/** @throws ServeError ENSEMBLE_INVALID with the reason if nothing of the Ensemble is served. */
async function explain(
  { client, namespace }: Cluster,
  text: string,
  requested: readonly string[],
): Promise<ClusterExplanation> {
  const reader = new Reader(client)
  const ensemble = await findEnsemble(reader, namespace, text)
  const revisions = await reader.list(CONTROLLER_REVISION, {
    namespace,
    labelSelector: `${ACCEPTED_LABEL}=ensemble`,
  })
  if (revisions === undefined) {
    throw new ServeError('ACCESS_DENIED', [...reader.refused.values()].join('; '))
  }
  const served = servedOf(ensemble, revisions)
  const notServed = unservedOf(ensemble)
  if (served === undefined) {
    const { reason, message } = notServed ?? { reason: 'Pending', message: 'it is being stored' }
    const problem = `Ensemble '${ensemble.metadata.name}' is not served: ${message} (${reason})`
    throw new ServeError('ENSEMBLE_INVALID', problem)
  }
  const { accepted, revision } = served
  const { plan, modelOf } = planAccepted(accepted)
  return {
    ...explainPlan(plan, modelOf, requested),
    served: { revision, generation: accepted.resource.generation },
    ...(notServed && { notServed }),
  }
}

async function findEnsemble(
  reader: Reader,
  namespace: string,
  text: string,
): Promise<Stored<EnsembleObject>> {
  const name = text.includes('/') ? text : `ensemble/${text}`
  const { ensemble } = await findTarget(reader, { namespace, text: name })
  if (ensemble === undefined) throw new ServeError('FLAG_INVALID', `${text} is no Ensemble`)
  return ensemble
}

function render(explanation: ClusterExplanation): string {
  const { served, notServed } = explanation
  const text = renderExplanation(explanation)
  if (notServed === undefined) return text
  const { generation, reason, message } = notServed
  const note = [
    `routers serve generation ${served.generation}; generation ${generation} is not accepted:`,
    `  ${reason}: ${message}`,
  ]
  return `${note.map(printable).join('\n')}\n\n${text}`
}
