import { type FlagTable, printable, renderJson } from '@tutti/chassis'
import { KUBECTL_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { readonlyListOf } from '@tutti/command-line/results'
import { ServeError } from '@tutti/errors'
import { z } from 'zod'
import { CLUSTER_FLAGS, type Cluster, Reader, withCluster } from '../cluster.ts'
import { buildNodes } from './build-nodes.ts'
import { readState } from './read-state.ts'
import { renderNodes } from './render-nodes.ts'
import { isBroken, StatusNode } from './tree.ts'

export const STATUS_FLAGS = {
  ...CLUSTER_FLAGS,
  'all-namespaces': {
    type: 'bool',
    aliases: ['A'],
    default: false,
    description: 'All namespaces.',
  },
  format: KUBECTL_FORMAT_FLAG,
} as const satisfies FlagTable

/** Report of what `status` found. */
const StatusReport = z
  .object({
    namespaces: readonlyListOf(
      z.object({ namespace: z.string(), resources: readonlyListOf(StatusNode) }),
    ),
    refused: readonlyListOf(z.object({ resource: z.string(), message: z.string() })).meta({
      description: 'What the user may not list, each with the words of the API server.',
    }),
  })
  .meta({ title: 'Result of kubectl tutti status' })
type StatusReport = z.infer<typeof StatusReport>

export const statusCommand = withFlags(
  {
    usage: 'kubectl tutti status [NAME] [FLAGS]',
    flags: STATUS_FLAGS,
    result: StatusReport,
  },
  async ({ flags, positionals }, environment) => {
    const [name, ...more] = positionals
    if (more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} names, want at most one`)
    }
    const report = await withCluster(flags, environment, (cluster) =>
      readReport(cluster, { name, isOfAll: flags['all-namespaces'] }),
    )
    environment.out(flags.format === 'json' ? renderJson(report) : render(report))
    const isWrong = report.namespaces.some(({ resources }) => resources.some(isBroken))
    const isUnseen = report.refused.some(({ resource }) => resource !== 'events')
    return isWrong || (isUnseen && report.namespaces.every(isEmpty)) ? 1 : 0
  },
)

/** @throws ServeError NOT_FOUND for a name that the user may look for, and that is not there. */
async function readReport(
  { client, namespace }: Cluster,
  { name, isOfAll }: { readonly name: string | undefined; readonly isOfAll: boolean },
): Promise<StatusReport> {
  const reader = new Reader(client)
  const states = await readState(reader, { namespace: isOfAll ? undefined : namespace })
  const nowMs = Date.now()
  const namespaces = states.map((state) => ({
    namespace: state.namespace,
    resources: buildNodes(state, { name, nowMs }),
  }))
  const refused = [...reader.refused].map(([resource, message]) => ({ resource, message }))
  if (name === undefined) return { namespaces, refused }
  const found = namespaces.filter((one) => !isEmpty(one))
  if (found.length === 0 && refused.length === 0) {
    const place = isOfAll ? 'any namespace' : `namespace ${namespace}`
    throw new ServeError('NOT_FOUND', `no Ensemble or Model '${name}' in ${place}`)
  }
  return { namespaces: found, refused }
}

function isEmpty({ resources }: StatusReport['namespaces'][number]): boolean {
  return resources.length === 0
}

function render({ namespaces, refused }: StatusReport): string {
  const blocks = namespaces.map((one) =>
    isEmpty(one)
      ? `no Ensembles or Models in namespace ${one.namespace}\n`
      : `namespace ${one.namespace}\n${renderNodes(one.resources)}`,
  )
  if (blocks.length === 0 && refused.length === 0) blocks.push('no Ensembles or Models\n')
  const notes = refused.map(
    ({ resource, message }) => `not shown: you may not list ${resource} (${printable(message)})\n`,
  )
  return [...blocks, ...(notes.length > 0 ? [notes.join('')] : [])].join('\n')
}
