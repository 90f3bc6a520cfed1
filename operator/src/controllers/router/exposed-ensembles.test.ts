import { createHash } from 'node:crypto'
import type { EnsembleSpec } from '@tutti/api'
import { ensembleManifest } from '@tutti/api/testing'
import { KubeError, type KubeObject, SECRET, type TokenIssuer } from '@tutti/kube'
import t from 'tap'
import { ENSEMBLE } from '../../api/kinds.ts'
import { memoryClient } from '../../testing/memory-client.ts'
import { type EdgeLock, readEdgeLock, readExposure } from './exposed-ensembles.ts'

const NAMESPACE = 'team'
const ISSUER = { url: 'https://issuer', keys: [{ kid: 'a' }] }

type Auth = NonNullable<NonNullable<EnsembleSpec['expose']>['auth']>

const digest = (token: string): string => createHash('sha256').update(token).digest('hex')

/** Reads the lock of an Ensemble with this auth, where the Secret `keys` holds this. */
function read(
  auth: Auth,
  data: Readonly<Record<string, string>> | undefined,
  readIssuer: () => Promise<TokenIssuer> = async () => ISSUER,
): Promise<EdgeLock> {
  const client = memoryClient()
  const metadata = { namespace: NAMESPACE, name: 'keys' }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata }
  const encoded = Object.entries(data ?? {}).map(([key, value]) => [key, btoa(value)] as const)
  if (data !== undefined) client.put(SECRET, { ...secret, data: Object.fromEntries(encoded) })
  const { signal } = new AbortController()
  return readEdgeLock(NAMESPACE, { auth }, { client, issuer: { read: readIssuer }, signal })
}

const SECRET_REF = { secretRef: { name: 'keys' } }

await t.test('a token is what the Secret holds, without its end of line', async (t) => {
  t.match(await read(SECRET_REF, { token: 's3cret\n' }), {
    lock: { identities: [{ name: 'token', tokenSha256: digest('s3cret') }] },
    problem: undefined,
  })
})

const WANTED = ', want one of printable ASCII without spaces'
for (const [name, data, told] of [
  ['no Secret', undefined, 'is not there, want its key token'],
  ['no key', { other: 'x' }, `has no key token${WANTED}`],
  ['an empty key', { token: ' \n' }, `has a key token that is empty${WANTED}`],
  ['a space', { token: 'a b' }, `has a key token that no header can carry${WANTED}`],
] as const) {
  await t.test(`${name} is told, and nobody is let in`, async (t) => {
    const { lock, problem } = await read(SECRET_REF, data)
    const message = `expose.auth.secretRef.name: Secret "keys" ${told}`
    t.same([lock, problem], [undefined, { missing: 'token', message }])
  })
}

const IDENTITIES: Auth = {
  ...SECRET_REF,
  identities: [
    { name: 'ci', tokenKey: 'ci', quota: { requestsPerSecond: 5 } },
    { name: 'partner', tokenKey: 'partner' },
    { name: 'batch', serviceAccount: { name: 'batch', namespace: 'jobs' } },
    { name: 'near', serviceAccount: { name: 'near' } },
  ],
  audience: 'plates',
  quota: { concurrentRequests: 2 },
}
const NEAR = {
  name: 'near',
  serviceAccount: { namespace: NAMESPACE, name: 'near', audience: 'plates' },
  quota: { concurrentRequests: 2 },
}
const BATCH = {
  ...NEAR,
  name: 'batch',
  serviceAccount: { namespace: 'jobs', name: 'batch', audience: 'plates' },
}

await t.test('identities have tokens or ServiceAccounts, and quotas of their own', async (t) => {
  const { lock, issuer, problem } = await read(IDENTITIES, { ci: 'one', partner: 'two' })
  t.same(lock, {
    identities: [
      { name: 'ci', tokenSha256: digest('one'), quota: { requestsPerSecond: 5 } },
      { name: 'partner', tokenSha256: digest('two'), quota: { concurrentRequests: 2 } },
      BATCH,
      NEAR,
    ],
  })
  t.same([issuer, problem], [ISSUER, undefined])
})

await t.test('a key that is gone ends the access of its identity alone', async (t) => {
  const { lock, problem } = await read(IDENTITIES, { partner: 'two' })
  t.same(
    lock?.identities?.map(({ name }) => name),
    ['partner', 'batch', 'near'],
  )
  t.match(problem, { missing: 'token', message: /no key ci, .* for identities\[0\]\(ci\)$/ })
})

await t.test('without keys of the issuer tokens of Secrets still count', async (t) => {
  const forbidden = new KubeError({ status: 403, reason: 'Forbidden', message: 'no' })
  const unreadable = (): Promise<never> => Promise.reject(forbidden)
  const { lock, issuer, problem } = await read(
    IDENTITIES,
    { ci: 'one', partner: 'two' },
    unreadable,
  )
  t.same(
    lock?.identities?.map(({ name }) => name),
    ['ci', 'partner'],
  )
  t.equal(issuer, undefined)
  t.match(problem, { missing: 'issuer' })
  const accounts: Auth = {
    identities: [{ name: 'near', serviceAccount: { name: 'near' } }],
    audience: 'x',
  }
  t.equal((await read(accounts, undefined, unreadable)).lock, undefined, 'it is not open')
})

await t.test('the one token has the quota', async (t) => {
  const quota = { requestsPerSecond: 1 }
  t.match(await read({ ...SECRET_REF, quota }, { token: 'x' }), {
    lock: { identities: [{ name: 'token', tokenSha256: digest('x'), quota }] },
  })
})

/** The revision of the route of an Ensemble with a token. */
async function revisionOf(o: {
  readonly token?: string
  readonly uid?: string
  readonly hosts?: readonly string[]
  readonly modelName?: string
}): Promise<string | undefined> {
  const { token = 'one', uid = 'u1', hosts = ['a.example', 'b.example'], modelName } = o
  const client = memoryClient()
  const metadata = { namespace: NAMESPACE, name: 'keys', uid }
  const data = { token: btoa(token) }
  client.put<KubeObject>(SECRET, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data,
  } as KubeObject)
  const expose = { ingress: { hosts }, auth: SECRET_REF }
  const { spec, ...rest } = ensembleManifest('ens')
  const named = { ...spec, expose, ...(modelName !== undefined && { modelName }) }
  client.put<KubeObject>(ENSEMBLE, {
    ...rest,
    metadata: { namespace: NAMESPACE, name: 'ens', uid: 'e' },
    spec: named,
  } as KubeObject)
  const ensemble = await client.get(ENSEMBLE, { namespace: NAMESPACE, name: 'ens' })
  const { signal } = new AbortController()
  const issuer = { read: async () => ISSUER }
  return (await readExposure(ensemble, { client, issuer, signal })).exposed?.revision
}

await t.test(
  'a route has another revision whenever it is another, and it tells no token',
  async (t) => {
    const all = [
      {},
      { token: 'two' },
      { uid: 'u2' },
      { hosts: ['a.example'] },
      { modelName: 'other' },
    ]
    const revisions = await Promise.all(all.map(revisionOf))
    t.equal(new Set(revisions).size, all.length, 'a guess of the token does not do without the uid')
    t.equal(await revisionOf({ hosts: ['b.example', 'a.example'] }), revisions[0])
  },
)
