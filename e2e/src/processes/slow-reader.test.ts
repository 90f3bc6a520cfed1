// needs: nats
import { setTimeout as delay } from 'node:timers/promises'
import { Client, credentials } from '@grpc/grpc-js'
import { decodeStreamResponse, encodeInferRequest, inferenceServices } from '@tutti/protocol'
import t from 'tap'
import { residentBytes } from '../control-churn.ts'
import { unclean } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { answerProblem, chainQuestion, identityQuestion } from './questions.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const MIB = 1024 * 1024
/** More than the router may hold of them. */
const REQUESTS = 480
const SIZE = MIB

await t.test('a client that does not read', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const models = ['big_identity', 'add_one_batch']
  const [router, step] = await Promise.all([harness.router(), harness.step({ models })])
  await untilReady([router], ['big_identity', 'ens_chain'])
  const client = new Client(`127.0.0.1:${router.grpcPort}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': 64 * MIB,
    'grpc.use_local_subchannel_pool': 1,
  })
  t.teardown(() => client.close())
  const { path, requestSerialize, responseDeserialize } =
    inferenceServices().inference.ModelStreamInfer
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  t.teardown(() => call.cancel())
  // Its end comes as an error when the test cancels it.
  call.on('error', () => {})
  const questions = Array.from({ length: REQUESTS }, (_, i) => identityQuestion(SIZE, i))
  const before = await residentBytes(router)
  const isSent = (async () => {
    for (const [i, { request }] of questions.entries()) {
      const message = Buffer.from(encodeInferRequest({ ...request, id: String(i) }))
      if (!call.write(message)) await new Promise((resolve) => call.once('drain', resolve))
    }
    call.end()
  })()

  await t.test('keeps nobody else from being served', async (t) => {
    const load = startLoad(t, {
      targets: [router],
      clients: 4,
      question: (i) => (i % 4 === 0 ? identityQuestion(MIB, i) : chainQuestion(i)),
    })
    await load.more(80)
    t.same(unclean(await load.stop()), [])
    // How many it could send says nothing: the library takes some answers a second though nobody reads them.
    const grown = (await residentBytes(router)) - before
    t.ok(grown < 400 * MIB, `the router has grown by ${Math.round(grown / MIB)} MiB`)
  })

  await t.test('gets everything once when it reads', async (t) => {
    const got = new Map<string, string>()
    for await (const message of call) {
      const { errorMessage, response } = decodeStreamResponse(message as Buffer)
      const id = response?.id ?? `error ${errorMessage}`
      const question = questions[Number(id)]
      const problem =
        question === undefined || response === undefined
          ? errorMessage
          : answerProblem(question, response)
      got.set(id, got.has(id) ? 'twice' : (problem ?? 'right'))
      // Slowly, so that the answers wait in every place on the way.
      if (got.size < 20) await delay(5)
    }
    await isSent
    t.equal(got.size, REQUESTS)
    t.same([...new Set(got.values())], ['right'])
    for (const { id } of [router, step]) await harness.watch.idle(id)
  })
})
