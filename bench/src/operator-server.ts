import { readdir, readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { join } from 'node:path'
import type { ApiServer, PlainObject } from '@tutti/kube/testing'
import { parse } from 'yaml'
import { ROOT } from './servers.ts'

export const OPERATOR_NAMESPACE = 'tutti-system'
export const OPERATOR_ACCOUNT = 'operator'
/** Name of the Secret with the issuer of NATS credentials. */
export const ISSUER_SECRET = 'nats-issuer'

/** Puts the CRDs of this repository into a server, and waits until they are served. */
export async function installCrds({ plain }: ApiServer): Promise<void> {
  const folder = join(ROOT, 'crds')
  for (const file of await readdir(folder)) {
    const crd: PlainObject = parse(await readFile(join(folder, file), 'utf8'))
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd['metadata'].name}`
    await plain.apply(path, crd)
    const collection = `/apis/tutti.dev/v1alpha1/${crd['spec'].names.plural}`
    while ((await plain.send('GET', collection)).status !== 200) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

/** Gives the operator's service account every right. */
export async function permitOperator({ plain }: ApiServer): Promise<void> {
  await plain.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'operator' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace: OPERATOR_NAMESPACE, name: OPERATOR_ACCOUNT }],
  })
}

/** Writes that a server has carried out or refused, by verb and resource. */
export class Writes {
  readonly #counts: ReadonlyMap<string, number>

  constructor(counts: ReadonlyMap<string, number>) {
    this.#counts = counts
  }

  since(before: Writes): Writes {
    const differences = [...this.#counts].map(([name, count]): [string, number] => [
      name,
      count - (before.#counts.get(name) ?? 0),
    ])
    return new Writes(new Map(differences.filter(([, count]) => count > 0)))
  }

  text(): string {
    const parts = [...this.#counts].map(([name, count]) => `${name} ${count}`)
    return parts.length === 0 ? 'none' : parts.toSorted().join(', ')
  }
}

const SERIES = /^apiserver_request_total\{(.*)\} (\d+)$/
const WRITING = new Set(['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE', 'DELETECOLLECTION'])

/** Reads the API server's own counts of writes, by every client. */
export async function countWrites(server: ApiServer): Promise<Writes> {
  const { url, ca, token } = server
  const text = await readText(new URL('/metrics', url), { ca, token })
  const counts = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, labels, value] = SERIES.exec(line) ?? []
    if (labels === undefined) continue
    const [verb, resource] = [labelOf(labels, 'verb'), labelOf(labels, 'resource')]
    if (!WRITING.has(verb)) continue
    const subresource = labelOf(labels, 'subresource')
    const name = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`
    counts.set(name, (counts.get(name) ?? 0) + Number(value))
  }
  return new Writes(counts)
}

function labelOf(labels: string, name: string): string {
  return new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? ''
}

async function readText(
  url: URL,
  { ca, token }: { readonly ca: string; readonly token: string },
): Promise<string> {
  return await new Promise((resolve, reject) => {
    get(url, { ca, headers: { authorization: `Bearer ${token}` } }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve(text))
      response.on('error', reject)
    }).on('error', reject)
  })
}
