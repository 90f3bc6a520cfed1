import { type FlagTable, printable } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type Command, FORMAT_FLAG, withFlags } from '../../command.ts'
import { CLUSTER_FLAGS, Reader, withCluster } from '../cluster.ts'
import { buildNodes } from './build-nodes.ts'
import { readState } from './read-state.ts'
import { renderNodes } from './render-nodes.ts'
import { isBroken, type StatusNode } from './tree.ts'

export const STATUS_FLAGS = {
  ...CLUSTER_FLAGS,
  'all-namespaces': {
    type: 'bool',
    aliases: ['A'],
    default: false,
    description: 'All namespaces.',
  },
  format: { ...FORMAT_FLAG, aliases: ['output', 'o'] },
} as const satisfies FlagTable

/** What `status` found. */
interface StatusReport {
  readonly namespaces: readonly {
    readonly namespace: string
    readonly resources: readonly StatusNode[]
  }[]
  /** What the user may not list, each with the words of the API server. */
  readonly refused: readonly { readonly resource: string; readonly message: string }[]
}

export const statusCommand: Command = {
  name: 'status',
  description:
    'Shows Ensembles, their steps and pods as a tree, with the cause of what is not ready.',
  ...withFlags(
    { usage: 'kubectl tutti status [NAME] [FLAGS]', flags: STATUS_FLAGS },
    async ({ flags, positionals }, environment) => {
      const [name, ...more] = positionals
      if (more.length > 0) {
        throw new ServeError('FLAG_INVALID', `got ${positionals.length} names, want at most one`)
      }
      const report = await withCluster(flags, environment, async ({ client, namespace }) => {
        const reader = new Reader(client)
        const where = { namespace: flags['all-namespaces'] ? undefined : namespace }
        const states = await readState(reader, where)
        const nowMs = Date.now()
        const namespaces = states.map((state) => ({
          namespace: state.namespace,
          resources: buildNodes(state, { name, nowMs }),
        }))
        const found = namespaces.filter(({ resources }) => resources.length > 0)
        if (found.length === 0 && name !== undefined && reader.refused.size === 0) {
          const place = where.namespace === undefined ? 'any namespace' : `namespace ${namespace}`
          throw new ServeError('NOT_FOUND', `no Ensemble or Model '${name}' in ${place}`)
        }
        const refused = [...reader.refused].map(([resource, message]) => ({ resource, message }))
        return { namespaces: name === undefined ? namespaces : found, refused }
      })
      environment.out(
        flags.format === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : render(report),
      )
      const isWrong = report.namespaces.some(({ resources }) => resources.some(isBroken))
      const isUnseen = report.refused.some(({ resource }) => resource !== 'events')
      return isWrong || (isUnseen && report.namespaces.every(isEmpty)) ? 1 : 0
    },
  ),
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
