import { parseFlags } from '@tutti/chassis'
import * as fc from 'fast-check'
import t from 'tap'
import {
  type AccountKeys,
  createAccountKeys,
  parseAccountKeys,
  toAccountTexts,
} from './account-keys.ts'
import { NATS_FLAGS, type NatsSettings, toNatsSettings } from './nats-flags.ts'
import { createNkey, readClaims, signClaims } from './nkey.ts'
import { buildAccountsConfig, buildClusterConfig } from './server-config.ts'
import { planRotation, type RotationPlan, type RotationStep } from './signing-rotation.ts'
import { KEY_NAMES, parseCredentialIssuer } from './tenancy-keys.ts'
import { type CredentialOptions, checkCredentials, issueCredentials } from './user-credentials.ts'

const HOUR_MS = 3_600_000
const NOW_MS = 1_800_000_000_000
const KEYS = createAccountKeys(NOW_MS)
const ACCOUNT = createNkey('account').publicKey

const OPTIONS: CredentialOptions = {
  issuer: { account: ACCOUNT, signing: KEYS.signing.current },
  prefix: 'tutti',
  namespace: 'team-a',
  lifetimeMs: 24 * HOUR_MS,
  nowMs: 1_800_000_000_500,
}

function claimsOf(credentials: string): unknown {
  return readClaims(credentials.split('\n')[1] ?? '')
}

await t.test('keys survive the Secret, and give the same configuration', async (t) => {
  const again = parseAccountKeys(toAccountTexts(KEYS))
  t.same(again, KEYS)
  t.equal(buildAccountsConfig(again), buildAccountsConfig(KEYS))
  t.equal(buildClusterConfig(again, ['a:1']), buildClusterConfig(KEYS, ['a:1']))
  const padded = Object.fromEntries(
    Object.entries(toAccountTexts(KEYS)).map(([name, text]) => [name, `${text}\n`]),
  )
  t.same(parseAccountKeys(padded), KEYS, 'a line end is what editors leave')
})

await t.test('the configuration holds no seed', async (t) => {
  for (const seed of [KEYS.operator.seed, KEYS.signing.current.seed]) {
    t.notOk(buildAccountsConfig(KEYS).includes(seed))
    t.notOk(buildClusterConfig(KEYS, ['a:1']).includes(seed))
  }
})

await t.test('a damaged Secret is refused by the key, and nothing of it is repeated', async (t) => {
  const texts = toAccountTexts(KEYS)
  const { account, nextSigning, previousSigning, signingSince } = KEY_NAMES
  const optional: readonly string[] = [nextSigning, previousSigning, signingSince]
  for (const name of Object.values(KEY_NAMES).filter((one) => one !== account)) {
    if (!optional.includes(name)) {
      const { [name]: _gone, ...rest } = texts
      t.throws(() => parseAccountKeys(rest), { message: `key "${name}" is missing` })
    }
    for (const secret of [
      '',
      'secret words',
      createNkey('user').seed,
      createNkey('user').publicKey,
    ]) {
      if (name === KEY_NAMES.routePassword && secret.length > 16 && !secret.includes(' ')) continue
      try {
        parseAccountKeys({ ...texts, [name]: secret })
        t.fail(`${name} with ${secret}`)
      } catch (error) {
        t.match(error, { name: 'DamagedKeysError', message: `key "${name}": ` })
        if (secret !== '') t.notMatch(error, { message: secret })
      }
    }
  }
})

await t.test('any other damage is an error of the same kind', async (t) => {
  const texts = toAccountTexts(KEYS)
  const name = fc.constantFrom(...Object.keys(texts).filter((one) => !one.startsWith('ca.')))
  fc.assert(
    fc.property(name, fc.nat(), fc.string({ unit: 'binary', maxLength: 2 }), (key, at, text) => {
      const was = texts[key] ?? ''
      const index = at % was.length
      const damaged = { ...texts, [key]: was.slice(0, index) + text + was.slice(index + 1) }
      try {
        const read = parseAccountKeys(damaged)
        // The keys that were read are sound: only white space at the ends, or a password, may differ.
        t.same({ ...read, routePassword: '' }, { ...KEYS, routePassword: '' })
      } catch (error) {
        t.match(error, { name: 'DamagedKeysError' })
      }
    }),
  )
})

await t.test('a key with a character too many, or another last one, is no key', async (t) => {
  const texts = toAccountTexts(KEYS)
  const alphabet = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')
  const { operator, signing } = KEY_NAMES
  for (const name of [operator, signing]) {
    const good = texts[name] ?? ''
    const others = alphabet.map((letter) => good.slice(0, -1) + letter)
    for (const bad of [...alphabet.map((letter) => good + letter), ...others]) {
      if (bad === good) continue
      const read = () => parseAccountKeys({ ...texts, [name]: bad })
      t.throws(read, { name: 'DamagedKeysError', message: `key "${name}": ` }, bad)
    }
  }
})

await t.test('external servers: an account and a key that signs its users', async (t) => {
  const [account, signing] = [createNkey('account'), createNkey('account')]
  const texts = { 'account.pub': account.publicKey, 'signing.nk': signing.seed }
  t.same(parseCredentialIssuer(texts), { account: account.publicKey, signing })
  t.throws(() => parseCredentialIssuer({ ...texts, 'signing.nk': account.publicKey }), {
    message: 'key "signing.nk": it holds no seed of an account nkey, want SA...',
  })
  const own = { account: account.publicKey, signing: account }
  const text = issueCredentials({ ...OPTIONS, issuer: own })
  t.notMatch(claimsOf(text), { nats: { issuer_account: /./ } }, "the account's own key names none")
  t.match(checkCredentials(text, { ...OPTIONS, issuer: own }), { fresh: true })
})

const LIFETIME_MS = 24 * HOUR_MS

function plan(keys: AccountKeys, step: RotationStep, nowMs = NOW_MS): RotationPlan {
  return planRotation(keys, step, { nowMs, lifetimeMs: LIFETIME_MS, isNextKnown: true })
}

function after(keys: AccountKeys, step: RotationStep, nowMs = NOW_MS): AccountKeys {
  const planned = plan(keys, step, nowMs)
  if (planned.kind !== 'change') throw new Error(planned.kind)
  return planned.keys
}

await t.test('rotation: what is due is done once, what is not is refused', async (t) => {
  t.match(plan(KEYS, 'use'), {
    message: 'got "use", but there is no next key: want "add" first',
  })
  t.match(plan(KEYS, 'remove'), { kind: 'done' })
  const added = after(KEYS, 'add')
  t.match(plan(added, 'add'), { kind: 'done' })
  t.match(plan(added, 'remove'), { kind: 'refused', message: /want "use" first/ })
  t.same(parseAccountKeys(toAccountTexts(added)), added)
  const used = after(added, 'use')
  t.same(used.signing, {
    current: added.signing.next,
    previous: KEYS.signing.current,
    usedAtMs: NOW_MS,
  })
  t.match(plan(used, 'use'), { kind: 'done' })
  t.match(plan(used, 'add'), { kind: 'refused', message: /want "remove" first/ })
  t.same(parseAccountKeys(toAccountTexts(used)), used)
  const end = NOW_MS + LIFETIME_MS
  t.match(plan(used, 'remove', end - 1), {
    kind: 'refused',
    message:
      'got "remove", but credentials of the last key are good until 2027-01-16T08:00:00.000Z: want "remove" after that, or "remove-now" to end them',
  })
  const { usedAtMs: _, ...signing } = used.signing
  t.match(plan({ ...used, signing }, 'remove', end), { message: /it is not known when/ })
  t.same(after({ ...used, signing }, 'remove-now').signing, { current: added.signing.next })
  t.same(after(used, 'remove-now').signing, { current: added.signing.next }, 'without a wait')
  const removed = after(used, 'remove', end)
  t.same(removed.signing, { current: added.signing.next })
  t.match(plan(removed, 'remove'), { kind: 'done' })
  const state = { nowMs: NOW_MS, lifetimeMs: LIFETIME_MS, isNextKnown: false }
  t.match(planRotation(added, 'use', state), {
    kind: 'refused',
    message: 'got "use", but no server has learned the next key: want servers that can be reached',
  })
  t.match(planRotation(added, 'Use', state), {
    message: 'got "Use", want one of add, use, remove, remove-now',
  })
})

await t.test(
  'a credential says whose it is, for how long, and exactly what it permits',
  async (t) => {
    t.match(claimsOf(issueCredentials(OPTIONS)), {
      iss: KEYS.signing.current.publicKey,
      sub: /^U/,
      name: 'namespace team-a',
      iat: 1_800_000_000,
      exp: 1_800_086_400,
    })
    const claims = claimsOf(issueCredentials(OPTIONS))
    const { nats } = claims as { nats: object }
    t.strictSame(nats, {
      pub: { allow: ['tutti.team-a.>'] },
      sub: { allow: ['tutti.team-a.>'] },
      subs: -1,
      data: -1,
      payload: -1,
      allowed_connection_types: ['STANDARD'],
      issuer_account: ACCOUNT,
      type: 'user',
      version: 2,
    })
  },
)

await t.test(
  'a credential stays for half of its life, and only if it is what is wanted',
  async (t) => {
    const text = issueCredentials(OPTIONS)
    const half = OPTIONS.nowMs - 500 + 12 * HOUR_MS
    t.same(checkCredentials(text, OPTIONS), { fresh: true, renewAtMs: half })
    t.match(checkCredentials(text, { ...OPTIONS, nowMs: half - 1 }), { fresh: true })
    const other = { account: createNkey('account').publicKey, signing: createNkey('account') }
    const cases: readonly (readonly [string, string | undefined, Partial<CredentialOptions>])[] = [
      ['absent', undefined, {}],
      ['unreadable', '', {}],
      ['unreadable', text.replace('SU', 'SX'), {}],
      ['unreadable', text.replace(/(JWT-----\n.{200})./, '$1_'), {}],
      ['unreadable', text.replace(/SU.*/, createNkey('user').seed), {}],
      ['other issuer', text, { issuer: { account: ACCOUNT, signing: other.signing } }],
      ['other permissions', text, { issuer: { ...OPTIONS.issuer, account: other.account } }],
      ['other permissions', text, { namespace: 'team' }],
      ['other permissions', text, { prefix: 'other' }],
      ['other lifetime', text, { lifetimeMs: HOUR_MS }],
      ['other lifetime', text, { nowMs: OPTIONS.nowMs - 13 * HOUR_MS }],
      ['half of its life is over', text, { nowMs: half }],
      ['half of its life is over', text, { nowMs: half + 100 * HOUR_MS }],
    ]
    for (const [why, credentials, o] of cases) {
      t.same(checkCredentials(credentials, { ...OPTIONS, ...o }), { fresh: false, why }, why)
    }
  },
)

await t.test(
  'what others wrote is never taken for a credential, and never thrown at',
  async (t) => {
    const text = issueCredentials(OPTIONS)
    fc.assert(
      fc.property(
        fc.nat(text.length - 1),
        fc.string({ unit: 'binary', maxLength: 3 }),
        (at, part) => {
          const damaged = text.slice(0, at) + part + text.slice(at + 1)
          if (damaged === text) return
          t.same(checkCredentials(damaged, OPTIONS), { fresh: false, why: 'unreadable' })
        },
      ),
    )
    for (const claims of [null, 1, [], {}, { iss: 1 }, { iss: 'x' }]) {
      const [header = '', , signature = ''] = (text.split('\n')[1] ?? '').split('.')
      const body = Buffer.from(JSON.stringify(claims)).toString('base64url')
      t.equal(readClaims(`${header}.${body}.${signature}`), undefined)
    }
    const stranger = createNkey('account')
    const forged = signClaims(stranger, {
      sub: 'U',
      name: 'x',
      iat: 1,
      nats: { type: 'user', version: 2 },
    })
    t.match(readClaims(forged), { iss: stranger.publicKey }, 'of whom, the claims say themselves')
  },
)

function flags(...args: string[]): NatsSettings {
  return toNatsSettings(parseFlags(NATS_FLAGS, args).values)
}

await t.test('flags: what the servers are', async (t) => {
  const url = '--nats=tls://n:4222'
  t.same(flags(url, '--nats-cluster-host=a:1', '--nats-cluster-host=b:1'), {
    urls: ['tls://n:4222'],
    prefix: 'tutti',
    lifetimeMs: 86_400_000,
    servers: {
      kind: 'accounts',
      clusterHosts: ['a:1', 'b:1'],
      limits: { connections: 96, subscriptions: 1024 },
    },
  })
  t.match(flags('--nats=nats://n:1', '--nats-issuer-secret=s'), {
    servers: { kind: 'external', issuerSecret: 's', hasAuthorities: false },
  })
  t.match(flags(url, '--nats-issuer-secret=s', '--nats-private-authority'), {
    servers: { kind: 'external', issuerSecret: 's', hasAuthorities: true },
  })
  const cases: readonly (readonly [string, string[], RegExp])[] = [
    ['--nats', [], /got none, want tls:/],
    ['--nats', ['--nats=http://n:1'], /got "http:/],
    ['--nats', ['--nats=nats://user:word@n:1', '--nats-issuer-secret=s'], /want nats:/],
    ['--nats', ['--nats=nats://n', '--nats-issuer-secret=s'], /want nats:/],
    ['--nats', ['--nats=nats://n:1'], /got "nats:.*want tls:.*without --nats-issuer-secret/],
    ['--nats-prefix', [url, '--nats-prefix=a.b'], /got "a.b", want letters/],
    ['--nats-prefix', [url, '--nats-prefix=_INBOX'], /want letters/],
    ['--nats-cluster-host', [url, '--nats-cluster-host=n'], /want HOST:PORT/],
    ['--nats-cluster-host', [url, '--nats-cluster-host=n:1', '--nats-issuer-secret=s'], /our own/],
    ['--nats-private-authority', [url, '--nats-private-authority'], /without --nats-issuer-secret/],
  ]
  for (const [field, args, message] of cases) {
    t.throws(
      () => flags(...args),
      { reason: 'FLAG_INVALID', details: { field }, message },
      args.join(' '),
    )
  }
})
