import { setTimeout } from 'node:timers/promises'
import { silentLogger, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { openRouterEndpoint, StepDirectory } from '@tutti/transport'
import { connect } from 'nats'
import { toDirect } from './edge-direct.ts'
import { type EdgeCall, runEdgeRound } from './edge-round.ts'
import { answerParent } from './forked.ts'
import { ECHO_SUBJECT } from './raw-subject.ts'
import { connectTcp } from './raw-tcp.ts'
import { RawWire } from './raw-wire.ts'

/*
 * The calling end of an edge, as a process: `raw URL` makes requests of the plain client, `wire URL` of the least client,
 * `socket PORT` over a plain socket,
 * `transport URL MODEL [KIND]` calls the step that serves the model as a router does, directly if a kind is given. Answers bytes, calls and calls in flight
 * with EdgeTimes.
 */

const ITEM_BYTES = 4
const WIDTH = 3

async function openRaw(url: string): Promise<EdgeCall> {
  const client = await connect({ servers: url })
  return async (data) => (await client.request(ECHO_SUBJECT, data, { timeout: 60_000 })).data
}

/** The broker keeps the order, so that answers need no names; their memory is used again after a turn, when they were compared. */
async function openWire(url: string): Promise<EdgeCall> {
  const waiting: ((bytes: Uint8Array) => void)[] = []
  const wire = new RawWire(url, ({ bytes, release }) => {
    waiting.shift()?.(bytes)
    setImmediate(release)
  })
  const inbox = `bench.inbox.${process.pid}`
  await wire.open(inbox)
  return (data) => {
    wire.publish(ECHO_SUBJECT, inbox, data)
    return new Promise((resolve) => waiting.push(resolve))
  }
}

/** As the wire: one socket keeps the order. */
async function openSocket(port: number): Promise<EdgeCall> {
  const waiting: ((bytes: Uint8Array) => void)[] = []
  const send = await connectTcp(port, (bytes) => waiting.shift()?.(bytes))
  return (data) => {
    send(data)
    return new Promise((resolve) => waiting.push(resolve))
  }
}

const DESCRIPTION = {}

/** The bench gets no calls and no questions: its echo serves no model that makes them. */
function notAsked(): ServeError {
  return new ServeError('UNSUPPORTED', 'the bench answers no one')
}

async function openTransport(url: string, model: string, via: string): Promise<EdgeCall> {
  const found = Promise.withResolvers<{
    readonly replica: string
    readonly version: number
    readonly revision: string
  }>()
  const member = await openRouterEndpoint({
    broker: { servers: [url], prefix: 'tutti', repository: 'default' },
    direct: toDirect(via),
    member: 'bench-caller',
    directory: new StepDirectory(),
    clock: systemClock,
    log: silentLogger,
    describe: () => DESCRIPTION,
    routerChanged: () => {},
    stepChanged: (replica, revisions) => {
      for (const [name, version, revision] of revisions) {
        if (name === model) found.resolve({ replica, version, revision })
      }
    },
    stepGone: () => {},
    executor: () => ({ execute: (_request, sink) => sink.fail(notAsked(), 'no') }),
    answer: () => Promise.reject(notAsked()),
  })
  const { replica, version, revision } = await found.promise
  const isReached = (): boolean => via === '' || member.direct.length > 0
  while (!isReached()) await setTimeout(10)
  const executor = member.executor({ model, version, revision }, replica)
  const { signal } = new AbortController()
  let number = 0
  return (bytes) => {
    number += 1
    const shape = [1, bytes.byteLength / ITEM_BYTES / WIDTH, WIDTH]
    const inputs = [{ name: 'x', datatype: 'FP32', shape, data: bytes }] as const
    const origin = { requestKey: String(number), step: '', attempt: 1 }
    return new Promise((resolve, reject) => {
      executor.execute(
        { ...REQUEST, inputs },
        {
          send: ({ outputs }) => resolve(outputs[0]?.data ?? new Uint8Array()),
          fail: reject,
        },
        { signal, origin },
      )
    })
  }
}

const REQUEST = {
  context: {
    id: '',
    correlationId: 0n,
    sequenceStart: false,
    sequenceEnd: false,
    priority: 0n,
    timeoutUs: 0n,
    parameters: new Map(),
  },
  requestedOutputs: [],
}

const [kind, url = '', model = '', via = ''] = process.argv.slice(2)

function openCall(): Promise<EdgeCall> {
  if (kind === 'raw') return openRaw(url)
  if (kind === 'socket') return openSocket(Number(url))
  return kind === 'wire' ? openWire(url) : openTransport(url, model, via)
}

const call = await openCall()
answerParent(([bytes = 0, calls = 0, inFlight = 1]) =>
  runEdgeRound({ bytes, calls, inFlight }, call),
)
