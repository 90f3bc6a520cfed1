import type { JsonObject, KubeObject, ManagedFields, Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { storedObject } from '../testing/stored-object.ts'
import { toCanonicalJson } from './canonical.ts'
import { ownedFieldsOf } from './owned-fields.ts'

/** With the server's account of who owns what. */
function owned(
  fieldsV1: JsonObject,
  content: object,
  entry: Partial<ManagedFields> = {},
): Stored<KubeObject> {
  const stored = storedObject({ name: 'a', namespace: 'ns' }, content)
  const { apiVersion } = stored
  const common = { manager: 'tutti-operator', operation: 'Apply' as const, apiVersion }
  const others = { manager: 'kubectl', operation: 'Update' as const, apiVersion }
  const managedFields = [
    { ...others, fieldsV1: { 'f:spec': {} } },
    { ...common, subresource: 'status', fieldsV1: { 'f:status': {} } },
    { ...common, fieldsV1, ...entry },
  ]
  return { ...stored, metadata: { ...stored.metadata, managedFields } }
}

const NAME = { name: 'a', namespace: 'ns' }

await t.test('members, elements by key and values of sets are picked', async (t) => {
  const spec = {
    replicas: 2,
    paused: true,
    selector: { matchLabels: { app: 'a' }, added: 1 },
    finalizers: ['theirs', 'ours'],
    containers: [
      { name: 'sidecar', image: 'x' },
      {
        name: 'main',
        image: 'y',
        imagePullPolicy: 'Always',
        ports: [{ containerPort: 80, protocol: 'TCP' }],
      },
    ],
    empty: {},
  }
  const fields = {
    'f:replicas': {},
    'f:selector': {},
    'f:gone': {},
    'f:empty': { '.': {} },
    'f:finalizers': { 'v:"ours"': {} },
    'f:containers': {
      'k:{"name":"main"}': {
        '.': {},
        'f:name': {},
        'f:image': {},
        'f:ports': {
          '.': {},
          'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} },
        },
      },
    },
  }
  const { selector } = spec
  t.same(ownedFieldsOf(owned({ 'f:spec': fields, 'f:metadata': { 'f:labels': {} } }, { spec })), {
    metadata: { ...NAME },
    spec: {
      replicas: 2,
      selector,
      finalizers: ['ours'],
      containers: [{ name: 'main', image: 'y', ports: [{ containerPort: 80 }] }],
      empty: {},
    },
  })
})

await t.test('only the account of our applies of this version counts', async (t) => {
  const fields = { 'f:spec': { 'f:replicas': {} } }
  const content = { spec: { replicas: 1 } }
  t.same(ownedFieldsOf(owned(fields, content)), { metadata: NAME, ...content })
  for (const entry of [
    { manager: 'tutti-operator-handover' },
    { operation: 'Update' },
    { apiVersion: 'v0' },
  ] as const) {
    t.equal(ownedFieldsOf(owned(fields, content, entry)), undefined)
  }
  const { managedFields: _, ...metadata } = owned(fields, content).metadata
  t.equal(ownedFieldsOf({ ...owned(fields, content), metadata }), undefined)
})

/** The account of an object all of whose members are owned; lists belong to their field as a whole. */
function accountOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [`f:${name}`, accountOf(part)]),
  )
}

/** With a member beside the others, in every object that is not empty. */
function withMore(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const members = Object.entries(value).map(([name, part]) => [name, withMore(part)])
  return members.length === 0 ? value : Object.fromEntries([...members, ['added by others', 1]])
}

await t.test('what was applied comes out, whatever others add beside it', async (t) => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (spec) => {
      const object = owned({ 'f:spec': accountOf(spec) }, { spec: withMore(spec) })
      const wanted = { metadata: NAME, spec }
      t.equal(toCanonicalJson(ownedFieldsOf(object)), toCanonicalJson(wanted))
    }),
    { examples: [[{ data: JSON.parse('{"__proto__":"x"}') }]] },
  )
})

await t.test('an account that no server writes overthrows nothing', async () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (fields, spec) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any JSON
      ownedFieldsOf(owned({ 'f:spec': fields as JsonObject }, { spec }))
    }),
  )
})
