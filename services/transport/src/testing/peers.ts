import { silentLogger, systemClock } from '@tutti/chassis'
import { type NatsServerOptions, startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import { type StepResponse, TensorMemory, type TensorRef } from '@tutti/tensor'
import { type OpenRouterPeerOptions, openRouterPeer } from '../peer/router-peer.ts'
import { type OpenStepPeerOptions, openStepPeer } from '../peer/step-peer.ts'
import type { BrokerOptions, RouterPeer, StepPeer } from '../peers.ts'
import { StepDirectory } from '../step-directory.ts'
import {
  answer,
  executing,
  sendEnvelope,
  type TestHandler,
  type TestTensor,
  until,
} from './envelopes.ts'

/** For `t.test`: skips by name where there is no nats-server. */
export const WITH_NATS = { skip: withoutNatsServer() } as const

export { answer, envelope, SERVED, tensorBytes, until } from './envelopes.ts'

export const REVISION = ['m', 1, 'aaa'] as const
const memory = new TensorMemory('test')

export function ref(bytes: Uint8Array): TensorRef {
  return memory.hold(bytes)
}

/** Answers every envelope with its first tensor. */
export const echo: TestHandler = async (_envelope, tensors, sink) => {
  sink.send(answer(tensors[0]?.bytes ?? new Uint8Array()))
}

export async function collect(stream: AsyncIterable<StepResponse>): Promise<StepResponse[]> {
  const all: StepResponse[] = []
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
  handle: TestHandler,
  o: Partial<OpenStepPeerOptions> = {},
): Promise<StepPeer> {
  const step = await openStepPeer({
    broker,
    peer,
    executor: executing(handle),
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
    executor: executing(() => {
      throw new ServeError('UNSUPPORTED', 'this router takes no calls')
    }),
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

/** Has a replica execute an envelope. The iteration throws the failure. */
export function sendTo(
  { peer }: TestRouter,
  to: { readonly replica: string },
  offered: Envelope,
  tensors: readonly TestTensor[],
  o: { readonly signal: AbortSignal },
): AsyncIterable<StepResponse> {
  return sendEnvelope(peer.executor, to, offered, tensors, o)
}

/** As `sendTo`, to a router that the step chooses. */
export function sendToRouter(
  { routers }: StepPeer,
  offered: Envelope,
  tensors: readonly TestTensor[],
  o: { readonly signal: AbortSignal },
): AsyncIterable<StepResponse> {
  const to = { replica: 'some router' }
  return sendEnvelope((target) => routers.executor(target), to, offered, tensors, o)
}
