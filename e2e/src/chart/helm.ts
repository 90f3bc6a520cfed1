import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findKubeBinaries } from '@tutti/kube/testing'
import { parseAllDocuments } from 'yaml'
import { type Ended, ROOT, runProgram } from '../serving.ts'

export const CHART = `${ROOT}charts/tutti`

export const PRODUCTION = join(CHART, 'production-values.yaml')

/** Paths of all files with values for users. */
export const OVERLAYS: readonly string[] = [
  ...readdirSync(join(CHART, 'ci')).map((name) => join(CHART, 'ci', name)),
  PRODUCTION,
]

/** Objects as the chart renders them; tests look at anything in them. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test's own assertions are the check
export type Rendered = Record<string, any>

/** Runs helm with no configuration but the arguments. */
export async function helm(...args: readonly string[]): Promise<Ended> {
  const home = await mkdtemp(join(tmpdir(), 'tutti-helm-'))
  const env = {
    HELM_CACHE_HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_DATA_HOME: home,
    KUBECONFIG: join(home, 'none'),
  }
  try {
    return await runProgram(join(findKubeBinaries() ?? '', 'helm'), args, { env })
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** Values as a user gives them, dotted: `nats.replicas`. Anything that JSON has. */
export type Values = Readonly<Record<string, unknown>>

/** Runs `helm template` with a release called tutti in the namespace tutti-system. */
export async function template(values: Values, ...args: readonly string[]): Promise<Ended> {
  const sets = Object.entries(values).map(
    ([key, value]) => `--set-json=${key}=${JSON.stringify(value)}`,
  )
  return await helm(
    'template',
    'tutti',
    CHART,
    '--namespace=tutti-system',
    '--kube-version=1.34.4',
    ...sets,
    ...args,
  )
}

/** Two at a time: each is a process that a test waits for. */
export async function forEach<T>(
  items: readonly T[],
  check: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items]
  const work = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await check(item)
  }
  await Promise.all([work(), work()])
}

/** Renders the chart. @throws Error with helm's words. */
export async function render(values: Values = {}, ...args: readonly string[]): Promise<Rendered[]> {
  const { code, out, err } = await template(values, ...args)
  if (code !== 0) throw new Error(err)
  return parseAll(out)
}

export function parseAll(text: string): Rendered[] {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return []
  return documents.flatMap((document): Rendered[] => {
    if (document.errors.length > 0) throw new Error(document.errors.join('\n'))
    const object: unknown = document.toJS()
    return typeof object === 'object' && object !== null ? [object] : []
  })
}

/** The one object of that kind and name. @throws Error if there is none. */
export function find(objects: readonly Rendered[], kind: string, name?: string): Rendered {
  const found = objects.find(
    (object) => object['kind'] === kind && (name === undefined || object['metadata'].name === name),
  )
  if (found === undefined) throw new Error(`no ${kind} ${name ?? ''} is rendered`)
  return found
}

/** Kinds and names of the rendered objects, sorted. */
export function namesOf(objects: readonly Rendered[]): string[] {
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()
}

/** The arguments of the operator, where the release is called tutti. */
export function operatorArgsOf(objects: readonly Rendered[]): string[] {
  return find(objects, 'Deployment', 'tutti-operator')['spec'].template.spec.containers[0].args
}
