// needs: apiserver
import { readFile } from 'node:fs/promises'
import {
  applyModelOverrides,
  ModelOverrides,
  ModelSpec,
  POD_FIELDS,
  toBeyondConfig,
} from '@tutti/api'
import { type PlainAnswer, type PlainObject, withoutKube } from '@tutti/kube/testing'
import { parseModelConfig } from '@tutti/model-config'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { replacesFirst } from '../controllers/model/full-nodes.ts'
import { planWanted } from '../controllers/model/plan-revisions.ts'
import { toScaling } from '../resources/model-scaling.ts'
import { decideReplicas } from '../scaling/decide-replicas.ts'
import { openCaseRig } from '../testing/case-rig.ts'
import { type FieldLook, lookAtFields } from '../testing/field-looks.ts'
import {
  type FieldWorld,
  openFieldWorld,
  WALKERS,
  type Walker,
  writeWalker,
} from '../testing/field-world.ts'
import { CONFIG_TEXT } from '../testing/model-cluster.ts'
import { modelDeployment, modelPod, servedModel } from '../testing/model-world.ts'
import { installGatewayApi } from '../testing/prepare-server.ts'
import { collectionsOf, leafOf, leavesOf, withField } from '../testing/schema-leaves.ts'

const skip = withoutKube()

/** The schema of a kind's spec, as it is installed. */
async function schemaOf(plural: string): Promise<PlainObject> {
  const url = new URL(`../../../crds/tutti.dev_${plural}.yaml`, import.meta.url)
  const crd: PlainObject = parse(await readFile(url, 'utf8'))
  return crd['spec'].versions[0].schema.openAPIV3Schema.properties.spec
}

/**
 * Fields that need Models of their own to be seen: together.test.ts walks the placements, and pod-group.test.ts the fields of the pods of
 * Ensembles.
 */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  models: ['placement'],
  ensembles: ['placement', ...POD_FIELDS],
}

await t.test('every field, list and map of both CRDs is walked, and nothing else', async (t) => {
  for (const plural of ['models', 'ensembles'] as const) {
    const schema = await schemaOf(plural)
    const emptied = collectionsOf(schema).filter(({ mayBeEmpty }) => mayBeEmpty)
    const walked = WALKERS.filter((walker) => walker.plural === plural)
    t.same(
      [...new Set(walked.map(({ change }) => leafOf(change.path)))].toSorted(),
      [...leavesOf(schema), ...emptied.map(({ path }) => path)]
        .filter((path) => !ELSEWHERE[plural]?.includes(/^\w+/.exec(path)?.[0] ?? ''))
        .toSorted(),
    )
  }
})

/** Finds what a step makes of a repository's configuration with the overrides that its Deployment gives it. */
function servedOf({ made }: FieldLook): unknown {
  const objects: PlainObject[] = made.map((text) => JSON.parse(text))
  const deployment = objects.find(({ plural }) => plural === 'deployments')
  const args: readonly string[] = deployment?.['spec'].template.spec.containers[0].args ?? []
  const [, text = '{}'] = /=(.*)$/.exec(args[args.indexOf('--model-overrides') + 1] ?? '') ?? []
  const overrides = ModelOverrides.parse(JSON.parse(text))
  const { sharedInterpreters } = toBeyondConfig(new Map([['m', overrides]]))
  const config = applyModelOverrides(parseModelConfig(CONFIG_TEXT, 'config.pbtxt'), overrides)
  return { config, isInterpreterShared: sharedInterpreters.has('m') }
}

/** Replicas that the operator's own scaling decides on while requests come, and once they are gone. */
function scalingOf(spec: PlainObject): readonly number[] {
  const scaling = toScaling(ModelSpec.parse(spec))
  if (scaling.provider !== 'Native') return []
  const loads = [{ inFlight: 1, queued: 2, slots: 1 }]
  const busy = decideReplicas({ scaling, current: 1, loads, recommendations: [], now: 0 })
  const idle = [{ inFlight: 0, queued: 0, slots: 1 }]
  const { recommendations } = busy
  const after = decideReplicas({ scaling, current: 3, loads: idle, recommendations, now: 400_000 })
  const unused = { scaling, current: 1, loads: idle, recommendations: [], now: 0, idleMs: 120_000 }
  return [busy.replicas, after.replicas, decideReplicas(unused).replicas]
}

/** The data that are stored of a Model whose pod serves. */
function acceptedOf(spec: PlainObject): unknown {
  const owner = { name: 'm', uid: 'u', generation: 1 }
  const pods = [modelPod('pod', { model: servedModel('r') })]
  const input = { owner, modelName: 'm', pods, isVerified: () => true }
  return planWanted({ ...input, spec: ModelSpec.parse(spec) }).map(({ data }) => data)
}

/** Tells whether an old pod goes first, where a new one finds no device. */
function replacesOnFullNodes(spec: PlainObject): boolean {
  const message = '0/1 nodes are available: 1 Insufficient nvidia.com/gpu.'
  const condition = { type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable' }
  const waiting = modelPod('new', { status: { conditions: [{ ...condition, message }] } })
  const pods = [modelPod('old', { isCurrent: false }), waiting].map(({ pod }) => pod)
  const deployment = modelDeployment({ status: { replicas: 2, updatedReplicas: 1 } })
  return replacesFirst({ ...ModelSpec.parse(spec), deployment, template: 't1', pods })
}

const NOTHING: FieldLook = { made: [], conditions: undefined }

interface Seen {
  readonly walker: Walker
  /** As the field was, as it is then, and as it was once more. */
  readonly looks: readonly FieldLook[]
  /** The look at a resource that had the new value of the field from the beginning. */
  readonly fresh: FieldLook
  readonly answer: PlainAnswer | undefined
  readonly messages: readonly string[]
}

function check(t: Test, seen: Seen): void {
  const { walker, looks, answer } = seen
  const [a = NOTHING, b = NOTHING, again] = looks
  const { reach } = walker.change
  t.ok(a.conditions, 'it was looked at')
  t.same(again, a, 'A -> B -> A is A')
  if (reach.at === 'server') {
    t.equal(answer?.status, 422)
    t.match(answer?.body['message'], reach.says)
    t.same(b, a)
    return
  }
  t.equal(answer?.status, 200)
  if (['children', 'scaling', 'accepted', 'full nodes'].includes(reach.at))
    checkReached(t, seen, { a, b })
  else checkHeld(t, seen, { a, b })
}

type Sides = { readonly a: FieldLook; readonly b: FieldLook }

function checkReached(t: Test, { walker, fresh }: Seen, { a, b }: Sides): void {
  const { change, specs, kind } = walker
  t.same(b, fresh, 'A -> B is B made anew')
  if (change.reach.at === 'scaling') {
    t.notSame(scalingOf(specs.b), scalingOf(specs.a), 'it reaches the scaling')
    return
  }
  if (change.reach.at === 'accepted') {
    t.notSame(acceptedOf(specs.b), acceptedOf(specs.a), 'it reaches what is stored')
    return
  }
  if (change.reach.at === 'full nodes') {
    t.same([specs.a, specs.b].map(replacesOnFullNodes), [false, true])
    return
  }
  t.notSame(b.made, a.made, 'it reaches what is made')
  const [field = ''] = change.path.split(/[.[{]/)
  // How long a load may take changes nothing of what is served.
  if (kind === 'Model' && field !== 'timeouts' && Object.hasOwn(ModelOverrides.shape, field)) {
    t.notSame(servedOf(b), servedOf(a), 'it reaches what is served')
  }
}

/** A new object has nothing that could stay: only the conditions are the same. */
function checkHeld(t: Test, { walker, fresh, messages }: Seen, { a, b }: Sides): void {
  const { reach } = walker.change
  t.same(b.made, a.made, 'what was made stays')
  t.notSame(b.conditions, a.conditions, 'a condition tells it')
  if (reach.at !== 'operator') return
  t.ok(b.conditions?.includes(reach.condition), reach.condition)
  t.ok(fresh.conditions?.includes(reach.condition), `${reach.condition}, made anew`)
  t.ok(
    messages.some((message) => reach.says.test(message)),
    `${reach.says}`,
  )
}

/** Conditions that are false or bad, by kind and name. */
async function messagesOf({ place }: FieldWorld): Promise<ReadonlyMap<string, string[]>> {
  const lists = await Promise.all(
    ['models', 'ensembles'].map((plural) => place.plain.list(place.path(plural))),
  )
  return new Map(
    lists
      .flat()
      .map(({ kind, metadata, status }) => [
        `${kind}/${metadata.name}`,
        status.conditions.map(({ message }: PlainObject) => message),
      ]),
  )
}

/** Fields that cannot be changed, so that the object would have to be created again. */
async function uidsOf({ place }: FieldWorld): Promise<readonly string[]> {
  const lists = await Promise.all(
    ['deployments', 'services'].map((plural) => place.plain.list(place.path(plural))),
  )
  return lists.flat().map(({ kind, metadata }) => `${kind}/${metadata.name} ${metadata.uid}`)
}

await t.test('cases 2 and 21: every field is changed alone, and back', { skip }, async (t) => {
  const rig = await openCaseRig(t, { hasControllers: false })
  await installGatewayApi(rig.server)
  const [walked, fresh] = [await openFieldWorld(t, rig), await openFieldWorld(t, rig)]
  for (const { status, body } of await walked.write(WALKERS, 'a'))
    t.equal(status, 201, body['message'])
  await walked.converged()
  const before = await lookAtFields(walked.place)
  const uids = await uidsOf(walked)
  const [answers] = await Promise.all([
    walked.write(WALKERS, 'b'),
    fresh.write(
      WALKERS.filter(({ change }) => change.reach.at !== 'server'),
      'b',
    ),
  ])
  await Promise.all([walked.converged(), fresh.converged()])
  const changed = await lookAtFields(walked.place)
  const messages = await messagesOf(walked)
  const anew = await lookAtFields(fresh.place)
  await walked.write(WALKERS, 'a')
  await walked.converged()
  const back = await lookAtFields(walked.place)
  for (const [index, walker] of WALKERS.entries()) {
    const { kind, name, change } = walker
    const key = `${kind}/${name}`
    const looks = [before, changed, back].map((all) => all.get(key) ?? NOTHING)
    const of = { walker, looks, fresh: anew.get(key) ?? NOTHING, answer: answers[index] }
    const { path, from, to } = change
    await t.test(`${kind} ${path}: ${JSON.stringify(from)} -> ${JSON.stringify(to)}`, async (t) =>
      check(t, { ...of, messages: messages.get(key) ?? [] }),
    )
  }
  t.same(changed.get(''), anew.get(''), 'the router')
  t.same(back.get(''), before.get(''), 'the router')
  t.same(await uidsOf(walked), uids, 'nothing had to be made anew')
  await t.test('null is as good as nothing, or is refused by name', (t) => sendNulls(t, walked))
  await t.test('lists that want an element are refused without', (t) => sendEmpty(t, walked))
})

/** Each leaf once. */
async function sendNulls(t: Test, { place }: FieldWorld): Promise<void> {
  const first = new Map(WALKERS.map((one) => [`${one.kind} ${leafOf(one.change.path)}`, one]))
  for (const [title, walker] of first) {
    const { path } = walker.change
    const send = (value: unknown): Promise<PlainAnswer> =>
      writeWalker(place, walker, { spec: withField(walker.specs.b, path, value), dryRun: true })
    const { status, body } = await send(null)
    if (status === 200) t.same(body['spec'], (await send(undefined)).body['spec'], title)
    else t.match(body['message'], fieldOf(path), title)
  }
}

async function sendEmpty(t: Test, { place }: FieldWorld): Promise<void> {
  for (const plural of ['models', 'ensembles'] as const) {
    for (const { path, mayBeEmpty } of collectionsOf(await schemaOf(plural))) {
      const walker = WALKERS.find(
        (one) => one.plural === plural && leafOf(one.change.path).startsWith(path),
      )
      if (mayBeEmpty || walker === undefined) continue
      const spec = withField(walker.specs.a, path, [])
      const { status, body } = await writeWalker(place, walker, { spec, dryRun: true })
      t.equal(status, 422, path)
      t.match(body['message'], fieldOf(path), path)
    }
  }
}

/** The name of the field that a path ends with. */
function fieldOf(path: string): string {
  return /([A-Za-z]+)[^A-Za-z]*$/.exec(leafOf(path))?.[1] ?? path
}
