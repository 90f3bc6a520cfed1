import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import * as fc from 'fast-check'
import t from 'tap'
import { ServiceAccountTokens } from './service-account-tokens.ts'

const URL = 'https://kubernetes.default.svc'
const NOW_S = 1_800_000_000
const clock = { epochMs: () => NOW_S * 1000 }

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 })
const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' })

function jwk(kid: string, { publicKey }: { readonly publicKey: KeyObject }) {
  return { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig' }
}

const KEYS = [
  jwk('rsa', rsa),
  jwk('small', small),
  jwk('p256', p256),
  jwk('p384', p384),
  jwk('p521', p521),
  { kty: 'oct', kid: 'shared', k: 'c2VjcmV0' },
  { kty: 'OKP', crv: 'Ed9999', kid: 'unknown', x: 'AA' },
  { ...jwk('encrypts', rsa), use: 'enc' },
  { ...jwk('rsa', rsa), kid: undefined },
]

const CLAIMS = {
  iss: URL,
  sub: 'system:serviceaccount:jobs:batch',
  aud: ['plates'],
  exp: NOW_S + 600,
  nbf: NOW_S,
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

interface Made {
  readonly header?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
  readonly key?: KeyObject
  readonly hash?: string
}

function make({ header = {}, claims = {}, key = rsa.privateKey, hash = 'sha256' }: Made = {}) {
  const signed = `${encode({ alg: 'RS256', kid: 'rsa', ...header })}.${encode({ ...CLAIMS, ...claims })}`
  const signature = sign(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

function read(token: string) {
  return new ServiceAccountTokens({ url: URL, keys: KEYS }, clock).read(token)
}

await t.test('tokens of each algorithm of Kubernetes are read', async (t) => {
  const read256 = { subject: CLAIMS.sub, audiences: ['plates'] }
  t.match(read(make()), read256)
  for (const [alg, kid, { privateKey: key }, hash] of [
    ['ES256', 'p256', p256, 'sha256'],
    ['ES384', 'p384', p384, 'sha384'],
    ['ES512', 'p521', p521, 'sha512'],
  ] as const) {
    t.match(read(make({ header: { alg, kid }, key, hash })), read256, alg)
  }
  t.match(read(make({ claims: { aud: 'one' } })), { audiences: ['one'] })
})

const REFUSED: Readonly<Record<string, Made>> = {
  'another issuer': { claims: { iss: 'https://elsewhere' } },
  'no issuer': { claims: { iss: undefined } },
  'no subject': { claims: { sub: undefined } },
  expired: { claims: { exp: NOW_S } },
  'without an end': { claims: { exp: undefined } },
  'an end that is text': { claims: { exp: String(NOW_S + 600) } },
  'not valid yet': { claims: { nbf: NOW_S + 31 } },
  'a foreign key': { key: foreign.privateKey },
  'a key that is not known': { header: { kid: 'other' } },
  'no key': { header: { kid: undefined } },
  'an algorithm that is not the key’s': { header: { alg: 'ES256' } },
  'a weaker hash': { header: { alg: 'RS1' }, hash: 'sha1' },
  'another RSA': { header: { alg: 'PS256' } },
  'a key that is too short': { header: { kid: 'small' }, key: small.privateKey },
  'a key that encrypts': { header: { kid: 'encrypts' } },
  'a critical member': { header: { crit: ['exp'] } },
}

for (const [name, made] of Object.entries(REFUSED)) {
  await t.test(`refused: ${name}`, async (t) => t.equal(read(make(made)), undefined))
}

await t.test('no token is made from what is public', async (t) => {
  const body = encode(CLAIMS)
  for (const alg of ['none', 'None', '', undefined]) {
    for (const kid of ['rsa', 'none', undefined]) {
      t.equal(read(`${encode({ alg, kid })}.${body}.`), undefined)
      t.equal(read(`${encode({ alg, kid })}.${body}.AA`), undefined)
    }
  }
  // The public key as the secret of an HMAC.
  const pem = rsa.publicKey.export({ format: 'pem', type: 'spki' })
  for (const kid of ['rsa', 'shared']) {
    const signed = `${encode({ alg: 'HS256', kid })}.${body}`
    for (const secret of [pem, 'secret']) {
      const mac = createHmac('sha256', secret).update(signed).digest('base64url')
      t.equal(read(`${signed}.${mac}`), undefined)
    }
  }
  for (const text of ['', '.', '..', '...', 'a.b.c', 'x', `${make()}.`, ` ${make()}`])
    t.equal(read(text), undefined, text)
})

await t.test('a token that was read is refused once it has expired', async (t) => {
  let now = NOW_S
  const tokens = new ServiceAccountTokens({ url: URL, keys: KEYS }, { epochMs: () => now * 1000 })
  const token = make()
  t.ok(tokens.read(token))
  now = CLAIMS.exp - 1
  t.ok(tokens.read(token))
  now = CLAIMS.exp
  t.equal(tokens.read(token), undefined)
})

await t.test('however a token is changed, it is never accepted', async () => {
  const tokens = new ServiceAccountTokens({ url: URL, keys: KEYS }, clock)
  const ec = make({ header: { alg: 'ES256', kid: 'p256' }, key: p256.privateKey })
  const valid = [make(), ec]
  for (const token of valid) if (tokens.read(token) === undefined) throw new Error('not valid')
  const letter = fc.constantFrom(...'abcXYZ019-_.=+/ '.split(''))
  const change = fc.oneof(
    fc.record({ kind: fc.constant('put' as const), at: fc.nat(1200), text: letter }),
    fc.record({ kind: fc.constant('drop' as const), at: fc.nat(1200), text: letter }),
    fc.record({ kind: fc.constant('add' as const), at: fc.nat(1200), text: letter }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom(...valid),
      fc.array(change, { minLength: 1, maxLength: 3 }),
      (token, changes) => {
        let changed = token
        for (const { kind, at, text } of changes) {
          const i = at % (changed.length + 1)
          const rest = changed.slice(kind === 'add' ? i : i + 1)
          changed = `${changed.slice(0, i)}${kind === 'drop' ? '' : text}${rest}`
        }
        return changed === token || tokens.read(changed) === undefined
      },
    ),
    { numRuns: 500 },
  )
})

await t.test(
  'whatever stands in header and payload, only the issuer’s key makes it valid',
  async () => {
    const tokens = new ServiceAccountTokens({ url: URL, keys: KEYS }, clock)
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.json()), fc.json(), (header, payload) => {
        const token = make({ header, claims: { extra: payload }, key: foreign.privateKey })
        return tokens.read(token) === undefined
      }),
      { numRuns: 50 },
    )
  },
)
