import { connect, type Socket } from 'node:net'
import { ScriptedBackend } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { openTestServer } from './testing/test-server.ts'

const ASK = {
  modelName: 'm',
  inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 1], data: new Uint8Array(4) }],
} as const

/** Opens calls and gives them up, faster than Node's own client can. */
class FastClient {
  readonly #socket: Socket
  #nextId = 1
  #onData = (): void => {}
  isEnded = false

  constructor(t: Test, address: string) {
    this.#socket = connect(Number(address.split(':')[1]), '127.0.0.1')
    t.teardown(() => this.#socket.destroy())
    this.#socket.on('error', () => {})
    this.#socket.on('data', (data) => {
      // An answer to a ping comes in one piece, whatever is before it.
      if (data.includes(PONG)) this.#onData()
    })
    this.#socket.once('close', () => {
      this.isEnded = true
      this.#onData()
    })
    this.#socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    this.#socket.write(toFrame({ type: 4 }))
    this.#socket.write(toFrame({ type: 4, flags: 1 }))
  }

  /** Resolves when the server has read that, or has ended the connection. */
  async giveUp(count: number): Promise<void> {
    const frames = Array.from({ length: count }, () => {
      const id = this.#nextId
      this.#nextId += 2
      const payload = id === 1 ? FIRST_HEADERS : HEADERS
      return [
        toFrame({ type: 1, flags: 4, id, payload }),
        toFrame({ type: 3, id, payload: CANCEL }),
      ]
    })
    const read = new Promise<void>((resolve) => (this.#onData = resolve))
    if (this.isEnded) return
    this.#socket.write(Buffer.concat([...frames.flat(), toFrame({ type: 6, payload: PING })]))
    await read
  }
}

const CANCEL = Buffer.from([0, 0, 0, 8])
const PING = Buffer.from('resets..')
const PONG = toFrame({ type: 6, flags: 1, payload: PING })
/** POST, http, and four that the next ones have from the table (RFC 7541). */
const FIRST_HEADERS = Buffer.concat([
  Buffer.from([0x83, 0x86]),
  toLiteral(0x44, '/inference.GRPCInferenceService/ModelInfer'),
  toLiteral(0x41, 'a'),
  toLiteral(0x5f, 'application/grpc'),
  toLiteral(0x40, 'te'),
  toLiteral(undefined, 'trailers'),
])
const HEADERS = Buffer.from([0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe])

function toLiteral(first: number | undefined, text: string): Buffer {
  const bytes = [...(first === undefined ? [] : [first]), text.length]
  return Buffer.concat([Buffer.from(bytes), Buffer.from(text)])
}

function toFrame(o: {
  readonly type: number
  readonly flags?: number
  readonly id?: number
  readonly payload?: Buffer
}): Buffer {
  const { type, flags = 0, id = 0, payload = Buffer.alloc(0) } = o
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

await t.test('calls may follow at once on those that are given up', async (t) => {
  const { address } = await openTestServer(t, { m: {} })
  const fast = new FastClient(t, address)
  // Some are refused, because those before them are not closed yet.
  await fast.giveUp(2000)
  t.notOk(fast.isEnded)
  await fast.giveUp(1000)
  t.notOk(fast.isEnded)
})

await t.test('who gives up calls without an end loses one connection alone', async (t) => {
  const { address, client } = await openTestServer(t, { m: {} })
  const fast = new FastClient(t, address)
  let resets = 0
  while (!fast.isEnded && resets < 100_000) {
    await t.resolves(client.infer(ASK), 'another client is answered')
    await fast.giveUp(1000)
    resets += 1000
  }
  t.ok(fast.isEnded, `${resets} resets`)
  t.ok(resets >= 4000, `${resets} resets`)
  await t.resolves(client.infer(ASK))
})

await t.test('who does so behind a proxy ends no connection of others', async (t) => {
  const outside = { select: () => new ScriptedBackend({ m: {} }) }
  const { address } = await openTestServer(t, {}, outside)
  const proxy = new FastClient(t, address)
  for (let round = 0; round < 8; round += 1) await proxy.giveUp(1000)
  t.notOk(proxy.isEnded)
})
