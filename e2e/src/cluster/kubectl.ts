import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  findKubeBinaries,
  type PlainClient,
  type PlainObject,
  plainClient,
} from '@tutti/kube/testing'
import type { Test } from 'tap'
import { runProgram } from '../serving.ts'

/** The address of the node, by which pods, Services and node ports are reached; undefined where there is none. */
export const NODE_ADDRESS = process.env['TUTTI_CLUSTER_ADDRESS']
/** By which pods of that node reach this machine. */
export const HOST_ADDRESS = process.env['TUTTI_CLUSTER_HOST']
/** Traefik's, on the node. */
export const INGRESS = { http: 30080, https: 30443 } as const

/** For tap's `skip`: why Tutti cannot be installed, or false if it can. */
export function withoutTuttiImages(): string | false {
  if (NODE_ADDRESS === undefined) return 'there is no cluster: npm run e2e'
  const { TUTTI_CLUSTER_LACKS: lacking } = process.env
  return Boolean(lacking) && `images are not loaded: ${lacking}; npm run cluster -- load-images`
}

/** Runs kubectl. @throws Error with what it wrote if it fails. */
export function kubectl(...args: readonly string[]): Promise<string> {
  return runKubeProgram('kubectl', args)
}

let client: PlainClient | undefined

/** For what is read again and again: a kubectl takes a tenth of a second of a core each time. */
export function clusterClient(): PlainClient {
  client ??= clientOf(JSON.parse(readFileSync(process.env['KUBECONFIG'] ?? '', 'utf8')))
  return client
}

/** @param kubeconfig - as the node of the tests writes it. */
function clientOf({ clusters, users }: PlainObject): PlainClient {
  const [{ cluster }] = clusters
  const [{ user }] = users
  const ca = Buffer.from(cluster['certificate-authority-data'], 'base64').toString()
  return plainClient({ url: new URL(cluster.server), ca, token: user.token })
}

/** The path of a program of Kubernetes, or its name if PATH has to have it. */
export function pathOf(program: 'kubectl' | 'helm'): string {
  const folder = findKubeBinaries()
  return folder === undefined ? program : join(folder, program)
}

/** Runs a program of Kubernetes. @throws Error with what it wrote if it fails. */
export async function runKubeProgram(
  program: 'kubectl' | 'helm',
  args: readonly string[],
  o: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const { code, out, err } = await runProgram(pathOf(program), args, o)
  if (code === 0) return out
  const waitedFor = args.some((arg) => WAITING.test(arg)) ? await unreadyPods(args) : ''
  throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${out}${err}${waitedFor}`)
}

/** Words of commands that wait for pods, or for what has some. */
const WAITING = /^(wait|rollout|test|--wait)$/
/** Lines that are shown of one pod, or of one namespace. */
const LINES = 40

/**
 * Describes pods that are not Ready, for the error of a wait that timed out: the latest events of the namespace that `args` name,
 * and for each such pod its description and the ends of its logs.
 */
export async function unreadyPods(args: readonly string[]): Promise<string> {
  const inSpace = args.find((arg) => arg.startsWith('--namespace=')) ?? '--all-namespaces'
  // A command that fails here is no further failure.
  const tell = (...words: readonly string[]): Promise<string> =>
    kubectl(...words, inSpace).catch(String)
  const events = await tell('get', 'events', '--sort-by=.metadata.creationTimestamp')
  const told = [`events:\n${lastLines(events)}`]
  const pods = await getObject('pods', inSpace).catch(() => ({ items: [] }))
  for (const { metadata, status } of pods.items) {
    if (isReady(status)) continue
    const [name, namespace] = [metadata.name, `--namespace=${metadata.namespace}`]
    const logs = ['logs', name, namespace, '--all-containers', '--prefix', '--tail=20']
    for (const words of [['describe', 'pod', name, namespace], logs]) {
      told.push(lastLines(await kubectl(...words).catch(String)))
    }
  }
  return `\n${told.join('\n')}`
}

/** Tells whether the condition Ready of a pod's status is true. */
export function isReady({ conditions = [] }: PlainObject): boolean {
  return conditions.some(({ type, status }: PlainObject) => type === 'Ready' && status === 'True')
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-LINES).join('\n')
}

/** As `kubectl apply`. */
export async function apply(...objects: readonly PlainObject[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects }
  await runKubeProgram('kubectl', ['apply', '--filename=-'], { input: JSON.stringify(list) })
}

/** An object, or the list of them, e.g. `getObject('pods', '--selector=app=x', '--namespace=y')`. */
export async function getObject(...args: readonly string[]): Promise<PlainObject> {
  return toObject(await kubectl('get', '--output=json', ...args))
}

/**
 * Makes a namespace that is gone when the test ends, with all that is in it.
 *
 * @param level - the Pod Security Standard that it enforces.
 */
export async function createNamespace(
  t: Test,
  name: string,
  level: 'restricted' | 'privileged' = 'restricted',
): Promise<void> {
  t.teardown(() => deleteNamespace(name))
  const labels = { 'pod-security.kubernetes.io/enforce': level }
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
}

/** Deletes a namespace that may be gone, and waits for it. Its pods end at once: tests no longer look at how they drain. */
export async function deleteNamespace(name: string): Promise<void> {
  await kubectl('delete', 'namespace', name, '--ignore-not-found', '--wait=false')
  await kubectl('delete', 'pods', '--all', '--grace-period=1', `--namespace=${name}`)
  await kubectl('wait', '--for=delete', `namespace/${name}`, '--timeout=300s')
}

function toObject(json: string): PlainObject {
  const object: unknown = JSON.parse(json)
  if (typeof object === 'object' && object !== null) return object
  throw new Error('kubectl gave no object')
}
