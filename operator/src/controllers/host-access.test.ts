import * as fc from 'fast-check'
import t from 'tap'
import { podSpec } from '../testing/build-model.ts'
import { storedObject } from '../testing/stored-object.ts'
import { findHostAccess } from './host-access.ts'
import { checkModel } from './model/check-model.ts'

type Json = Readonly<Record<string, unknown>>

const LISTS = ['containers', 'initContainers', 'ephemeralContainers'] as const
const CALLS = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const

const KUBELET_CALLS = [
  ...CALLS.map((name) => [name]),
  ['lifecycle', 'postStart'],
  ['lifecycle', 'preStop'],
].flatMap((call) => ['httpGet', 'tcpSocket'].map((kind) => [...call, kind]))

/** Fields that give access to a node: below a pod spec, below a security context of either kind, and below a container. */
const OF_POD: readonly (readonly [string, unknown])[] = [
  ['hostNetwork', true],
  ['hostPID', true],
  ['hostIPC', 'true'],
  ['volumes.2.hostPath', { path: '/' }],
]
const OF_CONTEXT: readonly (readonly [string, unknown])[] = [
  ['windowsOptions.hostProcess', true],
  ['seccompProfile.type', 'Unconfined'],
  ['appArmorProfile.type', 'Unconfined'],
  ['seLinuxOptions.user', 'system_u'],
  ['seLinuxOptions.role', 'sysadm_r'],
  ['seLinuxOptions.type', 'spc_t'],
]
const OF_CONTAINER: readonly (readonly [string, unknown])[] = [
  ...OF_CONTEXT.map(([path, value]) => [`securityContext.${path}`, value] as const),
  ['securityContext.privileged', true],
  ['securityContext.procMount', 'Unmasked'],
  ['securityContext.capabilities.add.0', 'SYS_ADMIN'],
  ['securityContext.capabilities.add.1', 'ALL'],
  ['ports.1.hostPort', 80],
  ['lifecycle.postStart.httpGet.host', '10.0.0.1'],
  ['lifecycle.preStop.tcpSocket.host', 'localhost'],
  ...CALLS.flatMap((call) => [
    [`${call}.httpGet.host`, '127.0.0.1'] as const,
    [`${call}.tcpSocket.host`, '169.254.169.254'] as const,
  ]),
]

const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })

const context = maybe(
  fc.record(
    {
      privileged: fc.constant(false),
      procMount: fc.constant('Default'),
      runAsUser: fc.nat(),
      capabilities: fc.record(
        { drop: fc.constant(['ALL']), add: fc.constantFrom([], ['NET_BIND_SERVICE']) },
        { requiredKeys: [] },
      ),
      seccompProfile: fc.record({ type: fc.constantFrom('RuntimeDefault', 'Localhost') }),
      seLinuxOptions: fc.record({ type: fc.constantFrom('', 'container_t'), level: fc.string() }),
      windowsOptions: fc.record({ hostProcess: fc.constant(false) }),
    },
    { requiredKeys: [] },
  ),
)

const container = fc.record(
  {
    name: fc.string(),
    // Keys and values that only look like the fields.
    env: fc.array(
      fc.record({ name: fc.constantFrom('hostPID', 'privileged'), value: fc.string() }),
    ),
    ports: fc.array(fc.record({ containerPort: fc.nat(), hostPort: fc.constant(0) })),
    livenessProbe: fc.record({ httpGet: fc.record({ port: fc.nat(), host: fc.constant('') }) }),
    securityContext: context,
  },
  { requiredKeys: [] },
)

const harmless: fc.Arbitrary<Json> = fc.record(
  {
    hostNetwork: fc.constant(false),
    hostPID: fc.constant(false),
    nodeSelector: fc.record({ hostPID: fc.string(), hostPath: fc.string() }),
    securityContext: context,
    volumes: fc.array(fc.record({ name: fc.string(), emptyDir: fc.constant({}) })),
    containers: fc.array(container, { maxLength: 3 }),
    initContainers: fc.array(container, { maxLength: 3 }),
    ephemeralContainers: fc.array(container, { maxLength: 3 }),
    // A null is refused whatever it is for.
    anything: fc
      .jsonValue()
      .map((value): unknown => JSON.parse(JSON.stringify(value), (_, part) => part ?? 0)),
  },
  { requiredKeys: [] },
)

const access = fc.oneof(
  fc.constantFrom(
    ...OF_POD,
    ...OF_CONTEXT.map(([at, it]) => [`securityContext.${at}`, it] as const),
  ),
  fc
    .tuple(fc.constantFrom(...LISTS), fc.nat({ max: 4 }), fc.constantFrom(...OF_CONTAINER))
    .map(([list, index, [path, value]]) => [`${list}.${index}.${path}`, value] as const),
)

function check(spec: unknown, allowsHostAccess = false) {
  const fields = { modelFormat: { name: 'onnx' }, storageUri: 'pvc://m', podTemplate: { spec } }
  const model = storedObject({ name: 'yolo' }, { spec: fields })
  const settings = { allowsHostAccess }
  return checkModel({
    model,
    rival: undefined,
    settings,
    hasSecret: true,
    claimRefusal: undefined,
    placementRefusal: undefined,
  }).refusal
}

await t.test('pods that use nothing of their node are accepted', async () => {
  fc.assert(fc.property(harmless, (spec) => check(JSON.parse(JSON.stringify(spec))) === undefined))
})

await t.test('wherever one field uses the node, the condition names it', async (t) => {
  fc.assert(
    fc.property(harmless, access, (base, [path, value]) => {
      const spec = withValue(base, path.split('.'), value)
      t.match(check(spec), {
        condition: 'Accepted',
        reason: 'HostAccessNotAllowed',
        message: `podTemplate.spec.${path.replace(/\.(\d+)/g, '[$1]')}: got ${JSON.stringify(value)}, want `,
      })
      t.match(check(spec)?.message, /--allow-host-access \(step\.allowHostAccess of the chart\)$/)
      return check(spec, true) === undefined
    }),
    { numRuns: 400 },
  )
})

const GONE = { $patch: 'delete' }
const ONLY = { $patch: 'replace' }

/** Fields and places that are of interest, with what takes our own away. */
const attempt = fc.oneof(
  access,
  fc.constantFrom<readonly [string, unknown]>(
    ['securityContext', GONE],
    ['securityContext', ONLY],
    ['securityContext.$patch', 'replace'],
    ['securityContext.seccompProfile', GONE],
    ['securityContext.seccompProfile', ONLY],
    ['securityContext.seccompProfile.type', null],
    ['containers.0', { name: 'main', ...ONLY }],
    ['containers.0', { name: 'main', securityContext: GONE }],
    ['containers.0', { name: 'main', securityContext: { capabilities: ONLY } }],
    ['containers.0', ONLY],
    ['volumes.0', ONLY],
  ),
)

await t.test('no pod of a template that is accepted uses its node', async (t) => {
  const seen = { accepted: 0, refused: 0 }
  fc.assert(
    fc.property(harmless, fc.array(attempt, { maxLength: 3 }), (base, attempts) => {
      const spec = attempts.reduce<unknown>(
        (made, [path, value]) => withValue(made, path.split('.'), value),
        JSON.parse(JSON.stringify(base)),
      )
      if (check(spec) !== undefined) {
        seen.refused += 1
        return
      }
      seen.accepted += 1
      t.same(usesOfNode(podSpec({ podTemplate: { spec: spec as Json } })), [])
    }),
    { numRuns: 1000 },
  )
  t.ok(seen.accepted > 100 && seen.refused > 100, JSON.stringify(seen))
})

await t.test('whatever is written, it is read without a fault', async () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...LISTS, 'volumes'), fc.jsonValue()), (spec) => {
      findHostAccess({ spec })
      return true
    }),
  )
})

await t.test('a profile in the manner of before there was a field for it', async (t) => {
  const key = 'container.apparmor.security.beta.kubernetes.io/main'
  const [open, confined] = ['unconfined', 'runtime/default'].map((profile) =>
    findHostAccess({ metadata: { annotations: { a: 'unconfined', [key]: profile } } }),
  )
  t.match(open, { got: '"unconfined"' })
  t.equal(confined, undefined)
})

await t.test('a long value is cut', async (t) => {
  const found = findHostAccess({ spec: { hostPID: 'x'.repeat(5000) } })
  t.equal(found?.got.length, 100)
})

/** Lists what a pod as it is made uses of its node, read from the API's own structure. */
function usesOfNode(pod: unknown): readonly string[] {
  const profile = at(pod, 'securityContext', 'seccompProfile', 'type')
  return [
    ...['hostNetwork', 'hostPID', 'hostIPC'].filter((name) => Boolean(at(pod, name))),
    ...list(at(pod, 'volumes')).filter((volume) => Boolean(at(volume, 'hostPath'))),
    ...(profile === 'RuntimeDefault' || profile === 'Localhost' ? [] : ['no profile']),
    ...usesOfContext(at(pod, 'securityContext')),
    ...LISTS.flatMap((name) => list(at(pod, name))).flatMap((one) => [
      ...list(at(one, 'ports')).filter((port) => Boolean(at(port, 'hostPort'))),
      ...KUBELET_CALLS.filter((call) => Boolean(at(one, ...call, 'host'))),
      ...usesOfContext(at(one, 'securityContext')),
    ]),
  ].map(String)
}

function usesOfContext(context: unknown): readonly unknown[] {
  return [
    ...[['privileged'], ['windowsOptions', 'hostProcess']].filter((it) =>
      Boolean(at(context, ...it)),
    ),
    ...['user', 'role'].filter((it) => Boolean(at(context, 'seLinuxOptions', it))),
    ...['seccompProfile', 'appArmorProfile'].filter(
      (it) => at(context, it, 'type') === 'Unconfined',
    ),
    ...list(at(context, 'capabilities', 'add')).filter((it) => it !== 'NET_BIND_SERVICE'),
    ...[at(context, 'procMount') ?? 'Default'].filter((it) => it !== 'Default'),
  ]
}

function at(node: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => Object(value)[name], node)
}

function list(node: unknown): readonly unknown[] {
  return Array.isArray(node) ? node : []
}

/** The value there; what lacks on the way is made, elements of lists too. */
function withValue(node: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  if (!/^\d+$/.test(name)) {
    const fields: Json = { ...Object(node) }
    return { ...fields, [name]: withValue(fields[name], rest, value) }
  }
  const list: unknown[] = Array.isArray(node) ? [...node] : []
  while (list.length <= Number(name)) list.push(rest.length === 0 ? 'NET_BIND_SERVICE' : {})
  list[Number(name)] = withValue(list[Number(name)], rest, value)
  return list
}
