// needs: nats
import { decodeChunk, decodePeerMessage, INLINE_LIMIT_BYTES, peerSubjects } from '@tutti/protocol'
import { connect } from 'nats'
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { ask, describe, unclean } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { chainQuestion, identityQuestion, versionedQuestion } from './questions.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const MIB = 1024 * 1024
const MODELS = ['add_one_batch', 'big_identity', 'versioned']

await t.test('large tensors and a broker of default limits', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, step] = await Promise.all([harness.router(), harness.step({ models: MODELS })])
  await untilReady([router], ['ens_chain', 'big_identity', 'ens_versioned'])
  const client = openClient(t, router)

  await t.test('64 MB pass, and small requests pass beside them', async (t) => {
    const small = startLoad(t, { targets: [router], clients: 1, question: chainQuestion })
    await small.more(1)
    const before = small.right
    const large = await ask(client, identityQuestion(64 * MIB))
    const beside = small.right
    t.same(large, { kind: 'right' })
    t.ok(beside - before >= 10, `${beside - before} small answers came before the large one`)
    t.same(unclean(await small.stop()), [])
  })

  await t.test('sizes around every bound pass through a model and an ensemble', async (t) => {
    const bounds = [INLINE_LIMIT_BYTES, MIB - 1024, MIB, 4 * MIB]
    for (const bound of bounds) {
      for (const bytes of [bound - 4, bound, bound + 4]) {
        t.same(await ask(client, versionedQuestion(bytes)), { kind: 'right' }, `${bytes} bytes`)
      }
      t.same(await ask(client, identityQuestion(bound + 1)), { kind: 'right' }, `over ${bound}`)
    }
  })

  await harness.watch.idle(step.id)
})

await t.test(
  'many at once use up the credits that were given, and never go beyond',
  { skip: SKIP },
  async (t) => {
    // All of it may wait for this process, which reads with both peers.
    const harness = await startHarness(t, { config: `max_pending: ${512 * MIB}` })
    const names = { prefix: 'tutti', repository: 'default' }
    // Before the peers: a broker hands a message to its subscribers one after the other, and who came after a peer could hear of
    // the peer's answer before it hears of what was answered.
    const tap = await connect({ servers: harness.broker.url })
    t.teardown(() => tap.close())
    const credits = new Map<string, number>()
    const beyond: string[] = []
    const waiting = new Set<string>()
    let chunks = 0
    tap.subscribe(peerSubjects(names).all, {
      callback: (_error, { subject, data }) => {
        if (subject.endsWith('.ctl')) {
          const message = decodePeerMessage(data)
          if (message.type !== 'accepted' && message.type !== 'credit') return
          // A credit goes to the sender of the transfer.
          for (const { transfer, upTo } of message.credits)
            credits.set(`${subject} ${transfer}`, upTo)
        } else if (subject.endsWith('.data')) {
          const { from, transfer, offset, total, bytes } = decodeChunk(data)
          const upTo = credits.get(`${peerSubjects(names).control(from)} ${transfer}`) ?? 0
          chunks += 1
          if (upTo < total) waiting.add(`${from} ${transfer}`)
          if (offset + bytes.byteLength > upTo) beyond.push(`${from} ${transfer} at ${offset}`)
        }
      },
    })
    await tap.flush()
    const [router, step] = await Promise.all([
      harness.router(),
      harness.step({ models: ['big_identity'] }),
    ])
    await untilReady([router], ['big_identity'])
    const client = openClient(t, router)
    // Each is more than is granted at once.
    const asked = Array.from({ length: 12 }, (_, i) => ask(client, identityQuestion(6 * MIB, i)))
    t.same([...new Set((await Promise.all(asked)).map(describe))], ['right'])
    await tap.flush()
    t.ok(chunks >= 12 * 2 * 12, `${chunks} chunks`)
    t.equal(waiting.size, 12 * 2, 'each tensor waited for further credits, there and back')
    t.same(beyond, [])
    await harness.watch.idle(step.id)
  },
)

await t.test('a broker that takes little', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t, { config: 'max_payload: 65536' })
  const models = ['identity_fp32_nonbatch', 'big_identity']
  const [router, step] = await Promise.all([harness.router(), harness.step({ models })])
  await untilReady([router], models)
  const client = openClient(t, router)

  await t.test('tensors pass in pieces that it takes', async (t) => {
    for (const bytes of [30_000, 40_000, 70_000, 3 * MIB]) {
      t.same(await ask(client, identityQuestion(bytes)), { kind: 'right' }, `${bytes} bytes`)
    }
  })

  await t.test(
    'what cannot be cut is refused before it is sent, and not tried again',
    async (t) => {
      const sent: string[] = []
      const tap = await connect({ servers: harness.broker.url })
      t.teardown(() => tap.close())
      tap.subscribe(peerSubjects({ prefix: 'tutti', repository: 'default' }).control(step.id), {
        callback: (_error, { data }) => sent.push(decodePeerMessage(data).type),
      })
      await tap.flush()
      const { request, ...rest } = identityQuestion(12)
      const parameters = new Map([
        ['note', { kind: 'string', value: 'x'.repeat(100_000) } as const],
      ])
      const outcome = await ask(client, { ...rest, request: { ...request, parameters } })
      t.match(outcome, { kind: 'error', code: 'RESOURCE_EXHAUSTED', reason: 'MESSAGE_TOO_LARGE' })
      const text = describe(outcome)
      t.match(text, /10\d{4} bytes/, 'the size')
      t.match(text, /65536/, 'the cap')
      t.match(text, new RegExp(step.id), 'the hop')
      t.same(await ask(client, identityQuestion(12)), { kind: 'right' })
      await tap.flush()
      t.equal(sent.filter((type) => type === 'offer').length, 1, 'the offer of the second alone')
    },
  )
})
