import { ok, strictEqual } from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { decodeToken, encodeToken } from './subject-tokens.ts'
import { buildSubjects } from './subjects.ts'

const SUBJECTS = buildSubjects({ prefix: 'tutti', repository: 'default' })

await t.test('the subjects of a repository', async (t) => {
  t.equal(SUBJECTS.all, 'tutti.default.>')
  t.equal(SUBJECTS.heartbeats('router'), 'tutti.default.hb.router.*')
  t.equal(SUBJECTS.heartbeat('s-1', 'step'), 'tutti.default.hb.step.s-1')
  t.equal(SUBJECTS.control('s-1'), 'tutti.default.peer.s-1.ctl')
  t.equal(SUBJECTS.data('s-1'), 'tutti.default.peer.s-1.data')
  t.equal(SUBJECTS.ping('s-1'), 'tutti.default.peer.s-1.ping')
  t.equal(SUBJECTS.inbox('s-1'), 'tutti.default.inbox.s-1')
})

await t.test('each name is one token', async (t) => {
  const cases = [
    ['plain-Name_1', 'plain-Name_1'],
    ['pre.gfpgan*', 'pre%2Egfpgan%2A'],
    ['a>b', 'a%3Eb'],
    ['100%', '100%25'],
    [' \t\r\n', '%20%09%0D%0A'],
    ['\u0000\u007f\u0085', '%00%7F%C2%85'],
    ['\u00a0\u2003\ufeff', '%C2%A0%E2%80%83%EF%BB%BF'],
    ['größe-日本', 'größe-日本'],
  ] as const
  for (const [name, token] of cases) {
    t.equal(encodeToken(name), token)
    t.equal(decodeToken(token), name)
  }
  const property = fc.property(fc.string({ unit: 'binary', minLength: 1 }), (name) => {
    const token = encodeToken(name)
    ok(!/[.*>\s]/.test(token))
    strictEqual(decodeToken(token), name)
  })
  t.doesNotThrow(() => fc.assert(property))
})

await t.test('a token that encodeToken does not make has no name', async (t) => {
  for (const token of ['', '%', '%2', '%zz', '%41', '%2e', 'a.b', '*', '%FF', '%E2%80']) {
    t.equal(decodeToken(token), undefined, token)
  }
})

await t.test('names come back out of the subjects', async (t) => {
  const property = fc.property(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
    (name) => {
      strictEqual(SUBJECTS.memberOfHeartbeat(SUBJECTS.heartbeat(name, 'router')), name)
      strictEqual(SUBJECTS.memberOfHeartbeat(SUBJECTS.heartbeat(name, 'step')), name)
    },
  )
  t.doesNotThrow(() => fc.assert(property))
  const others = [
    'tutti.other.hb.s',
    'tutti.default.hb.',
    'tutti.default.hb.a',
    'tutti.default.hb.a.b',
    'tutti.default.hb.step.',
    'tutti.default.hb.step.router.a',
    'tutti.default.hb.%41',
    'tutti.default.peer.s.ctl',
    '',
  ]
  for (const subject of others) {
    t.equal(SUBJECTS.memberOfHeartbeat(subject), undefined, subject)
  }
})

await t.test('repositories and prefixes with like names have nothing in common', async (t) => {
  const one = buildSubjects({ prefix: 'a.b', repository: 'c' })
  const other = buildSubjects({ prefix: 'a', repository: 'b.c' })
  t.not(one.all, other.all)
  t.equal(one.all, 'a%2Eb.c.>')
  t.equal(other.memberOfHeartbeat(one.heartbeat('p', 'step')), undefined)
})

await t.test('settings that make no subject are refused by name', async (t) => {
  const cases = [
    [{ prefix: '', repository: 'r' }, 'prefix', 'it is empty'],
    [{ prefix: 'p', repository: '' }, 'repository', 'it is empty'],
    [{ prefix: 'p'.repeat(129), repository: 'r' }, 'prefix', '129 bytes, want at most 128'],
    [{ prefix: 'p', repository: 'é'.repeat(65) }, 'repository', '130 bytes, want at most 128'],
    [{ prefix: '$SYS', repository: 'r' }, 'prefix', 'NATS does not use itself'],
    [{ prefix: '_INBOX', repository: 'r' }, 'prefix', 'NATS does not use itself'],
    [{ prefix: 'p', repository: '\ud800' }, 'repository', 'no Unicode text'],
  ] as const
  for (const [names, field, message] of cases) {
    t.throws(() => buildSubjects(names), { reason: 'SETTING_INVALID', details: { field }, message })
  }
})

await t.test('a member that makes no token is refused', async (t) => {
  const cases = [
    [() => SUBJECTS.control(''), 'member'],
    [() => SUBJECTS.heartbeat('p'.repeat(256), 'step'), 'member'],
    [() => SUBJECTS.inbox('\udc00'), 'member'],
  ] as const
  for (const [act, field] of cases) {
    t.throws(act, { reason: 'INVALID_PARAMETER', details: { field }, message: `subject ${field}` })
  }
})
