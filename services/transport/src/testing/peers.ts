import { silentLogger, systemClock } from '@tutti/chassis'
import { type NatsServerOptions, startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import { EMPTY_CONTEXT, TensorMemory, type TensorRef } from '@tutti/tensor'
import { type OpenRouterPeerOptions, openRouterPeer } from '../peer/router-peer.ts'
import { type OpenStepPeerOptions, openStepPeer } from '../peer/step-peer.ts'
import type { BrokerOptions, RouterPeer, StepPeer } from '../peers.ts'
import { StepDirectory } from '../step-directory.ts'
import type { BearerResponse, EnvelopeHandler } from '../tensor-bearer.ts'

/** For `t.test`: skips by name where there is no nats-server. */
export const WITH_NATS = { skip: withoutNatsServer() } as const

export const REVISION = ['m', 1, 'aaa'] as const
export const SERVED = { model: 'm', version: 1, revision: 'aaa' } as const

/** An envelope of model m with one UINT8 input `x` of that many elements. */
export function envelope(elements: number, o: Partial<Envelope> = {}): Envelope {
  return {
    requestKey: 'r1',
    ...SERVED,
    step: '',
    attempt: 1,
    context: EMPTY_CONTEXT,
    requestedOutputs: [],
    inputs: [{ name: 'x', datatype: 'UINT8', shape: [elements] }],
    ...o,
  }
}

const memory = new TensorMemory('test')

/** Bytes that differ from their neighbours, and from those of another seed. */
export function tensorBytes(elements: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(elements)
  for (let i = 0; i < elements; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + seed) & 0xff
  return bytes
}

export function ref(bytes: Uint8Array): TensorRef {
  return memory.hold(bytes)
}

/** A response with one UINT8 output `y`. */
export function answer(bytes: Uint8Array, o: Partial<BearerResponse> = {}): BearerResponse {
  return {
    index: 0,
    final: true,
    outputs: [{ name: 'y', datatype: 'UINT8', shape: [bytes.byteLength], data: bytes }],
    parameters: new Map(),
    ...o,
  }
}

/** Answers every envelope with its first tensor. */
export const echo: EnvelopeHandler = async (_envelope, tensors, sink) => {
  sink.send(answer(tensors[0]?.bytes ?? new Uint8Array()))
}

export async function collect(stream: AsyncIterable<BearerResponse>): Promise<BearerResponse[]> {
  const all: BearerResponse[] = []
  for await (const one of stream) all.push(one)
  return all
}

/** What the promise rejects with. */
export function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it did not fail')
    },
    (error: unknown) => error,
  )
}

export function brokerAt(url: string, o: Partial<BrokerOptions> = {}): BrokerOptions {
  return { servers: [url], prefix: 'tutti', repository: 'default', ...o }
}

/** A broker of the test's own. */
export async function openBroker(t: Teardown, o: NatsServerOptions = {}): Promise<BrokerOptions> {
  const server = await startNatsServer(o)
  t.teardown(() => server.stop())
  return brokerAt(server.url)
}

/** What a test closes in its teardown. */
export interface Teardown {
  teardown(close: () => Promise<void>): void
}

const ROUTER_DESCRIPTION = { router: true }

/** A router with its directory and what it was told. */
export interface TestRouter {
  readonly peer: RouterPeer
  readonly directory: StepDirectory
  readonly changed: string[]
  readonly gone: string[]
  /** Resolves as soon as the claim holds; it is looked at whenever the router hears something, and now and then. */
  until(claim: () => boolean): Promise<void>
}

export async function openTestStep(
  t: Teardown,
  broker: BrokerOptions,
  peer: string,
  handle: EnvelopeHandler,
  o: Partial<OpenStepPeerOptions> = {},
): Promise<StepPeer> {
  const step = await openStepPeer({
    broker,
    peer,
    handle,
    describe: () => ({ peer }),
    answer: async (question, argument) => ({ question, argument, peer }),
    revisions: () => [REVISION],
    load: () => ({ inFlight: 0, queued: 0, freeSlots: 8 }),
    onChange: () => () => {},
    clock: systemClock,
    log: silentLogger,
    ...o,
  })
  t.teardown(() => step.close())
  return step
}

export async function openTestRouter(
  t: Teardown,
  broker: BrokerOptions,
  peer: string,
  o: Partial<OpenRouterPeerOptions> = {},
): Promise<TestRouter> {
  const directory = new StepDirectory()
  const changed: string[] = []
  const gone: string[] = []
  const router = await openRouterPeer({
    broker,
    peer,
    directory,
    clock: systemClock,
    log: silentLogger,
    handle: async () => {
      throw new ServeError('UNSUPPORTED', 'this router takes no calls')
    },
    answer: async (question, argument) => ({ question, argument, peer }),
    describe: () => ROUTER_DESCRIPTION,
    routerChanged: () => {},
    stepChanged: (step) => void changed.push(step),
    stepGone: (step) => void gone.push(step),
    ...o,
  })
  t.teardown(() => router.close())
  return { peer: router, directory, changed, gone, until }
}

/** Resolves as soon as the claim holds; the test's own time limit is what ends it otherwise. */
export async function until(claim: () => boolean): Promise<void> {
  while (!claim()) await new Promise((resolve) => setTimeout(resolve, 5))
}
