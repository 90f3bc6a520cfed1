// needs: apiserver
import { glob, readdir, readFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { availableParallelism } from 'node:os'
import { findRouterProblems, parseManifest, type SchemaProblem, toProblemText } from '@tutti/api'
import { modelManifest } from '@tutti/api/testing'
import { type ApiServer, startApiServer, withoutKube } from '@tutti/kube/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { renderManifest } from '../import/render-manifest.ts'
import { parseManifests } from '../manifests/parse-manifests.ts'
import { brokenManifests, isRecord, someManifest } from '../testing/manifest-arbitraries.ts'
import { type Manifest, WHOLE } from '../testing/whole-manifests.ts'

/*
 * The same result from the schemas, from a real API server, and from `tutti validate`, on manifests that are changed in a place or
 * two; and for each rule of CEL that is broken, the same message at the same field.
 */

const { toDotPath } = z.core

const CRDS = new URL('../../../../crds/', import.meta.url)
const EXAMPLES = new URL('../../../../examples/', import.meta.url)
const MANIFESTS = 4000
const AT_ONCE = 8 * availableParallelism()

/** An error of the API server at a field. */
interface Cause {
  readonly field: string
  readonly reason: string
  readonly message: string
}

/** The answer of the API server. */
interface Answer {
  /** Why the manifest was refused; empty if it was accepted. */
  readonly message: string
  readonly causes: readonly Cause[]
}

interface Results {
  readonly manifest: Manifest
  readonly problems: readonly SchemaProblem[]
  readonly zod: string
  readonly cli: string
  readonly server: Answer
}

/** Problems that the API server lets in, because its rules do not see them: the operator tells them by the condition Accepted. */
const TOLD =
  /^spec\.(resources\.(requests|limits): got the key|resources: got devices|scaling\.behavior: got it with the provider|podTemplate\.spec: got null|maxInFlightBytes: got|steps\[\d+\]\.(constants|(onError|forEach\.onItemError)\.default)\..*: (got|value)|inputs\[\d+\]\.default: (got|value))/

function findProblems(manifest: Manifest): readonly SchemaProblem[] {
  const { kind } = manifest
  if (kind === 'Router') return findRouterProblems(manifest)
  const parsed = parseManifest(kind === 'Model' ? 'Model' : 'Ensemble', manifest)
  return parsed.success ? [] : parsed.problems
}

/** True for a manifest that breaks rules of zod's alone. */
function isTold({ zod }: Pick<Results, 'zod'>): boolean {
  return (
    zod !== '' && zod.split('; spec.').every((one, i) => TOLD.test(i > 0 ? `spec.${one}` : one))
  )
}

function cliResult(manifest: Manifest): string {
  const { problems, manifests } = parseManifests([{ name: 'f', text: renderManifest(manifest) }])
  const texts = problems.map(({ path, message }) => `${path}: ${message}`)
  const isFound = manifests.length === 1 || manifest['kind'] === 'Router'
  return problems.length === 0 && !isFound ? 'nothing was found' : texts.join('\n')
}

interface Rule {
  /** Field and rule. */
  readonly key: string
  /** The text of the API server, if it is always the same. */
  readonly message: string | undefined
}

/** The rules below a node of a CRD, but for those about a change: only the API server has the object as it was. */
function rulesOf(node: unknown, path = ''): readonly Rule[] {
  if (!isRecord(node)) return []
  const validations: {
    rule: string
    message: string
    messageExpression?: string
    fieldPath?: string
  }[] = Object(node['x-kubernetes-validations'] ?? [])
  const members = isRecord(node['properties']) ? Object.entries(node['properties']) : []
  return [
    ...validations
      .filter(({ rule }) => !rule.includes('oldSelf'))
      .map(({ rule, message, messageExpression, fieldPath = '' }) => ({
        key: toRuleKey(`${path}${fieldPath}`.slice(1), rule),
        message: messageExpression === undefined ? message : undefined,
      })),
    ...members.flatMap(([name, member]) => rulesOf(member, `${path}.${name}`)),
    ...rulesOf(node['items'], `${path}[]`),
  ]
}

function toRuleKey(field: string, rule: string): string {
  return `${field.replaceAll(/\[[0-9]+\]/g, '[]')}: ${rule}`
}

function keyOf({ path, rule = '' }: SchemaProblem): string {
  return toRuleKey(toDotPath([...path]), rule)
}

/** True for an error of a rule: those of the words of a schema have texts of Kubernetes' own. */
function isOfRule({ reason, message }: Cause): boolean {
  return reason === 'FieldValueInvalid' && !/ in body | must /.test(message)
}

/** Which of two such keys Go names is by chance. */
const ANY_KEY = /got the key '[^']*'/

/** The rules that the API server and the schemas say to be broken, compared. */
class Comparison {
  readonly agreed = new Set<string>()
  readonly differences: string[] = []
  readonly #messages: ReadonlyMap<string, string | undefined>

  constructor(rules: readonly Rule[]) {
    this.#messages = new Map(rules.map(({ key, message }) => [key, message]))
  }

  add({ problems, server }: Results): void {
    const ours = problems.filter(({ rule }) => rule !== undefined)
    const theirs = server.causes.filter(isOfRule)
    // For an unknown field, and after some errors of a schema, the API server evaluates no rule.
    const isSkipped = theirs.some(({ message }) => message.includes('rules were not checked'))
    if (theirs.length === 0 || isSkipped) return
    for (const one of ours) {
      if (theirs.some((cause) => this.#isSame(one, cause))) this.agreed.add(keyOf(one))
      else this.differences.push(`${keyOf(one)}: ${one.message}`)
    }
    // After some, zod evaluates none of the objects around.
    if (ours.length < problems.length) return
    for (const cause of theirs) {
      if (ours.some((one) => this.#isSame(one, cause))) continue
      this.differences.push(`the API server: ${cause.field}: ${cause.message}`)
    }
  }

  /** True for the same field and text; where the API server's has no values, ours may have them. */
  #isSame(problem: SchemaProblem, { field, message }: Cause): boolean {
    if (field !== toDotPath([...problem.path])) return false
    const text = message.replace(ANY_KEY, 'KEY')
    return [problem.message, this.#messages.get(keyOf(problem))].some(
      (one) => one !== undefined && text.endsWith(`: ${one.replace(ANY_KEY, 'KEY')}`),
    )
  }
}

/** Checks what only a change shows: names stay. */
async function checkChanges(t: Test, { plain }: ApiServer): Promise<void> {
  const models = '/apis/tutti.dev/v1alpha1/namespaces/default/models'
  await plain.create(models, modelManifest('kept'))
  const patch = (spec: Manifest) => plain.send('PATCH', `${models}/kept`, { body: { spec } })
  t.match(await patch({ modelName: 'other' }), {
    status: 422,
    body: { message: /modelName cannot be changed: delete the resource and make another/ },
  })
  t.match(
    await patch({ modelName: 'kept', paused: true }),
    { status: 200 },
    'the same in other words',
  )
  await plain.delete(`${models}/kept`)
}

const SKIP = { skip: withoutKube() }

await t.test(
  'the schemas, the API server and tutti validate agree on every manifest and every rule',
  SKIP,
  async (t) => {
    const server = await startApiServer()
    t.teardown(() => server.stop())
    const rules: Rule[] = []
    for (const file of await readdir(CRDS)) {
      const crd = parse(await readFile(new URL(file, CRDS), 'utf8'))
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`
      rules.push(...rulesOf(crd.spec.versions[0].schema.openAPIV3Schema))
      await server.plain.apply(path, crd)
      await server.plain.until(path, (object) => {
        const conditions: { type: string; status: string }[] = object?.['status']?.conditions ?? []
        return conditions.some(({ type, status }) => type === 'Established' && status === 'True')
      })
    }
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE, ca: server.ca })
    t.teardown(() => agent.destroy())

    const ask = (manifest: Manifest): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const plural = `${String(manifest['kind']).toLowerCase()}s`
        const path = `/apis/tutti.dev/v1alpha1/namespaces/default/${plural}?dryRun=All&fieldValidation=Strict`
        const sent = request(new URL(path, server.url), {
          method: 'POST',
          agent,
          headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
        })
        sent.on('error', reject)
        sent.on('response', (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (piece: string) => (text += piece))
          response.on('end', () => {
            const { statusCode = 0 } = response
            if (statusCode === 201) return resolve({ message: '', causes: [] })
            if (statusCode !== 422 && statusCode !== 400) {
              return reject(new Error(`${statusCode}: ${text}`))
            }
            const { message, details } = JSON.parse(text)
            resolve({ message, causes: details?.causes ?? [] })
          })
        })
        sent.end(JSON.stringify(manifest))
      })

    // Established is not yet served.
    const [probe] = WHOLE
    while ((await ask(probe ?? {}).catch(() => undefined)) === undefined) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const manifest of WHOLE) {
      t.equal((await ask(manifest)).message, '', 'the server accepts it')
      t.same(findProblems(manifest), [])
    }

    for await (const file of glob('*/manifest.yaml', { cwd: EXAMPLES })) {
      const text = await readFile(new URL(file, EXAMPLES), 'utf8')
      for (const manifest of parseAllDocuments(text).map((one): Manifest => one.toJS())) {
        t.equal((await ask(manifest)).message, '', file)
      }
    }

    await checkChanges(t, server)

    const results: Results[] = []
    const queue = [...brokenManifests, ...fc.sample(someManifest, MANIFESTS)].values()
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const manifest of queue) {
          const problems = findProblems(manifest)
          const own = { problems, zod: toProblemText(problems), cli: cliResult(manifest) }
          results.push({ manifest, ...own, server: await ask(manifest) })
        }
      }),
    )
    const different = results.filter((result) => {
      const wanted = isTold(result) ? 'told' : result.server.message
      return (result.zod === '') !== (wanted === '') || (result.cli === '') !== (wanted === '')
    })
    t.same(different.slice(0, 5), [], `${different.length} of ${results.length} differ`)
    const comparison = new Comparison(rules)
    for (const result of results) comparison.add(result)
    const { agreed, differences } = comparison
    t.same(differences.slice(0, 5), [], `${differences.length} rules are told differently`)
    t.same(
      rules.filter(({ key }) => !agreed.has(key)),
      [],
      `each of the ${rules.length} rules was broken`,
    )
    const accepted = results.filter(({ server }) => server.message === '').length
    t.ok(accepted > MANIFESTS / 20, `${accepted} accepted`)
    t.ok(accepted < MANIFESTS - MANIFESTS / 20, `${MANIFESTS - accepted} refused`)
  },
)
