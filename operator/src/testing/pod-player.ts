import { createHash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  applyModelOverrides,
  isOfBuiltins,
  isOfRouter,
  parseEdgeRoutes,
  type ServedModel,
  SLEEP_ANNOTATION,
  type StepLoad,
  toDescriptionJson,
  type WantedByRouter,
} from '@tutti/api'
import { BUILTIN_HOST, BUILTIN_HOST_CONFIG, BUILTIN_REVISION } from '@tutti/builtins'
import type { Stored } from '@tutti/kube'
import type { PlainClient, PlainObject } from '@tutti/kube/testing'
import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import { acceptedOf, type Revision } from '../controllers/accepted-revisions.ts'
import { type Caches } from '../controllers/caches.ts'
import { runsBuiltins } from '../controllers/router/builtins-need.ts'
import { type PodState, statusOf } from '../pods/pod-state.ts'
import { type PodServer, startPodServer } from './pod-server.ts'

/** The behaviour of a pod that is bound to a node. */
export type Play =
  /** Pod that runs and has loaded its model. */
  | { readonly kind: 'ready' }
  /** Pod that runs, but whose model failed to load with this error. */
  | { readonly kind: 'load error'; readonly text: string }
  /** Pod that is ready for Kubernetes, but never answers the operator's requests. */
  | { readonly kind: 'mute' }
  /** Pod with this status, at which nothing listens. */
  | { readonly kind: 'status'; readonly status: PlainObject }

export interface PodPlayerOptions {
  readonly plain: PlainClient
  readonly caches: Caches
  /** Port on which all pods answer. */
  readonly port: number
  readonly play: (pod: Stored<PodState>) => Play
  /** Text of the config.pbtxt that all models have. */
  readonly configText: string
  readonly load: () => Omit<StepLoad['models'][number], 'name'>
}

const RETRY_MS = 100

interface Playing {
  readonly server: PodServer
  /** Absent for routers. */
  readonly models?: readonly ServedModel[]
  readonly namespace: string
  readonly isMute: boolean
}

let addresses = 0

/** A loopback address that no other pod of this process has. */
function nextAddress(): string {
  addresses += 1
  return `127.81.${addresses >> 8}.${addresses & 255}`
}

/**
 * Plays the kubelet and the processes in pods. It gives every bound pod an address and a status, and answers there as steps and
 * routers do. Routers serve the accepted revisions that a pod serves.
 */
export class PodPlayer {
  readonly #options: PodPlayerOptions
  readonly #playing = new Map<string, Playing>()
  readonly #work = new Set<Promise<void>>()
  readonly #end: () => void
  #isClosed = false
  /** Namespaces whose routers serve no accepted revision. */
  readonly deaf = new Set<string>()
  /** Nodes whose pods the player leaves as they are. */
  readonly lostNodes = new Set<string>()
  /** Models for which requests wait in the routers of a namespace. */
  readonly #wanted = new Map<string, WantedByRouter>()
  /** Called at each change of these, and at the end. */
  readonly #onWanted = new Set<() => void>()
  /** Questions for the load of pods so far. */
  asked = 0
  #onAsked: () => void = () => {}
  #unanswered = 0
  #onUnanswered: () => void = () => {}

  constructor(o: PodPlayerOptions) {
    this.#options = o
    this.#end = o.caches.pods.subscribe(({ type, object }) => {
      const work = (type === 'deleted' ? this.#stop(object) : this.#look(object)).finally(() =>
        this.#work.delete(work),
      )
      this.#work.add(work)
    })
  }

  /** Says for which models requests wait in the routers of a namespace, from now on. */
  want(namespace: string, ...models: readonly string[]): void {
    const { seen } = this.#wantedIn(namespace)
    this.#wanted.set(namespace, { seen: `${Number(seen) + 1}`, models: [...models] })
    for (const answer of this.#onWanted) answer()
  }

  #wantedIn(namespace: string): WantedByRouter {
    return this.#wanted.get(namespace) ?? { seen: '0', models: [] }
  }

  /** Answers once it is another answer than the one that was seen, as routers do. */
  async #answerWanted(namespace: string, url: string): Promise<WantedByRouter> {
    const seen = new URL(url, 'http://pod').searchParams.get('seen')
    while (!this.#isClosed && this.#wantedIn(namespace).seen === seen) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onWanted.add(resolve)
      await promise
      this.#onWanted.delete(resolve)
    }
    return this.#wantedIn(namespace)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const answer of this.#onWanted) answer()
    this.#end()
    await Promise.allSettled(this.#work)
    await Promise.all([...this.#playing.values()].map(({ server }) => server.close()))
  }

  /** Resolves when mute pods have received `count` requests in total. */
  async untilUnanswered(count: number): Promise<void> {
    while (this.#unanswered < count) {
      await new Promise<void>((resolve) => (this.#onUnanswered = resolve))
    }
  }

  /** Resolves when pods were asked for their load so often, in total. */
  async untilAsked(count: number): Promise<void> {
    while (this.asked < count) {
      await new Promise<void>((resolve) => (this.#onAsked = resolve))
    }
  }

  #leaveOpen(): void {
    this.#unanswered += 1
    this.#onUnanswered()
  }

  async #look(pod: Stored<PodState>): Promise<void> {
    if (this.lostNodes.has(pod.spec.nodeName ?? '')) return
    const { uid, name, namespace, deletionTimestamp } = pod.metadata
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    if (deletionTimestamp !== undefined) {
      await this.#options.plain.delete(path, { gracePeriodSeconds: 0, preconditions: { uid } })
      return
    }
    await this.#openReady(pod, path)
    const isPlayed = pod.status?.phase === 'Running' || pod.status?.phase === 'Failed'
    if (pod.spec.nodeName === undefined || this.#playing.has(uid) || isPlayed) return
    const play = this.#options.play(pod)
    if (play.kind === 'status') await this.#setStatus(path, play.status)
    else await this.#run(pod, path, play)
  }

  async #run(pod: Stored<PodState>, path: string, play: Play): Promise<void> {
    const { uid, namespace = '' } = pod.metadata
    const ip = nextAddress()
    const isMute = play.kind === 'mute'
    // Before the first wait, so that no later event plays it again.
    this.#playing.set(uid, { namespace, isMute, server: NO_SERVER })
    const models = isOfRouter(pod) ? {} : { models: await this.#modelsOf(pod, path, play) }
    const said = { namespace, isMute, ...models }
    const server = await startPodServer({
      ip,
      port: this.#options.port,
      listener: this.#listener(uid),
    })
    this.#playing.set(uid, { ...said, server })
    await this.#setStatus(path, runningStatus(pod, ip, play.kind !== 'load error'))
  }

  async #stop({ metadata }: Stored<PodState>): Promise<void> {
    const playing = this.#playing.get(metadata.uid)
    this.#playing.delete(metadata.uid)
    await playing?.server.close()
  }

  /** As the kubelet does once all gates are open. */
  async #openReady(pod: Stored<PodState>, path: string): Promise<void> {
    const wanted = [
      'ContainersReady',
      ...(pod.spec.readinessGates ?? []).map((gate) => gate.conditionType),
    ]
    if (statusOf(pod, 'Ready') === 'True') return
    if (!wanted.every((type) => statusOf(pod, type) === 'True')) return
    const lastTransitionTime = new Date().toISOString()
    await this.#setStatus(path, {
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }],
    })
  }

  /** Until it is stored, as no event would bring it about again: a server that is busy refuses writes, or loses them. */
  async #setStatus(path: string, status: PlainObject): Promise<void> {
    // Conditions are merged by type.
    const contentType = 'application/strategic-merge-patch+json'
    while (!this.#isClosed) {
      const sent = this.#options.plain.send('PATCH', `${path}/status`, {
        body: { status },
        contentType,
      })
      const answer = await sent.catch(() => undefined)
      if (answer?.status === 200 || answer?.status === 404) return
      await sleep(RETRY_MS)
    }
  }

  async #modelsOf(
    pod: Stored<PodState>,
    path: string,
    play: Play,
  ): Promise<readonly ServedModel[]> {
    if (isOfBuiltins(pod)) return [BUILTINS]
    const args = await this.#argsOf(path)
    const overrides = valuesOf(args, '--model-overrides')
    return valuesOf(args, '--model-directory').map((text, i) =>
      this.#toModel(text.split('=')[0] ?? '', overrides[i] ?? '', play),
    )
  }

  /** The operator's caches do not keep them. */
  async #argsOf(path: string): Promise<readonly string[]> {
    const { spec } = await this.#options.plain.get(path)
    return spec.containers[0].args ?? []
  }

  #toModel(name: string, text: string, play: Play): ServedModel {
    if (play.kind === 'load error') {
      return { name, labels: {}, versions: [], reason: play.text }
    }
    const overrides: unknown = JSON.parse(text.slice(name.length + 1))
    const base = { ...parseModelConfig(this.#options.configText, 'config.pbtxt'), name }
    const config: ModelConfig = applyModelOverrides(base, overrides as never)
    const revision = createHash('sha256').update(JSON.stringify(config)).digest('hex')
    const versions = [{ version: 1, revision, state: 'READY' as const, reason: '' }]
    return { name, config, labels: {}, versions, reason: '' }
  }

  #listener(uid: string): RequestListener {
    return ({ url = '' }, response) => {
      const playing = this.#playing.get(uid)
      const { models } = playing ?? {}
      const answer = (json: unknown): void => void response.end(JSON.stringify(json))
      if (playing === undefined) response.writeHead(404).end()
      else if (playing.isMute) this.#leaveOpen()
      else if (models === undefined && url.startsWith('/tutti/v1/wanted')) {
        void this.#answerWanted(playing.namespace, url).then(answer)
      } else if (models === undefined) void this.#servedByRouter(playing.namespace).then(answer)
      else if (url === '/tutti/v1/start') answer({ loads: [] })
      else if (url === '/tutti/v1/load') {
        this.asked += 1
        this.#onAsked()
        answer({ models: models.map(({ name }) => ({ name, ...this.#options.load() })) })
      } else answer(toDescriptionJson({ replica: uid, models }))
    }
  }

  async #servedByRouter(namespace: string) {
    const {
      models: accepted,
      ensembles,
      sleeping,
    } = this.deaf.has(namespace)
      ? { models: [], ensembles: [], sleeping: [] }
      : this.#acceptedIn(namespace)
    const live = [...this.#playing.values()].filter((one) => one.namespace === namespace)
    const running = live.flatMap(({ models = [] }) => models)
    const hasBuiltins = running.includes(BUILTINS)
    const models = running.flatMap((model) => {
      if (model === BUILTINS) return []
      const versions = model.versions
        .filter(({ revision }) => accepted.includes(revision))
        .map(({ version, revision }) => ({ version, revisions: [revision] }))
      return versions.length === 0 ? [] : [{ name: model.name, versions }]
    })
    const exposed = this.deaf.has(namespace) ? [] : await this.#exposedIn(namespace)
    const served = ensembles.filter((one) => hasBuiltins || !runsBuiltins(one))
    const names = served.map(({ metadata }) => metadata.name)
    return { models: merge([...models, ...sleeping]), accepted: names, exposed }
  }

  /** Revisions of the routes for outside; the operator's caches do not keep them. */
  async #exposedIn(namespace: string): Promise<readonly string[]> {
    const path = `/api/v1/namespaces/${namespace}/secrets/tutti-router-edge`
    const { body } = await this.#options.plain.send('GET', path)
    const text = Buffer.from(body?.['data']?.['edge.json'] ?? '', 'base64').toString()
    const { routes = [] } = text === '' ? {} : parseEdgeRoutes(JSON.parse(text))
    return routes.flatMap(({ revision }) => revision ?? [])
  }

  /** Revisions of models, and the ControllerRevisions of Ensembles. */
  #acceptedIn(namespace: string) {
    const models: string[] = []
    const ensembles: Revision[] = []
    /** Models whose requests would wait, be there pods or not. */
    const sleeping: RouterModel[] = []
    for (const revision of this.#options.caches.revisions.inNamespace(namespace)) {
      const accepted = acceptedOf(revision)
      if (accepted === undefined) continue
      if (accepted.kind === 'Ensemble') ensembles.push(revision)
      else models.push(...accepted.versions.map(({ revision }) => revision))
      if (revision.metadata.annotations?.[SLEEP_ANNOTATION] === undefined) continue
      if (accepted.kind === 'Ensemble') continue
      const versions = accepted.versions.map(({ version, revision: one }) => {
        return { version, revisions: [one] }
      })
      sleeping.push({ name: accepted.modelName, versions })
    }
    return { models, ensembles, sleeping }
  }
}

/** The model that a step with built-ins describes. */
const BUILTINS: ServedModel = {
  name: BUILTIN_HOST,
  config: BUILTIN_HOST_CONFIG,
  labels: {},
  versions: [{ version: 1, revision: BUILTIN_REVISION, state: 'READY', reason: '' }],
  reason: '',
}

const NO_SERVER: PodServer = {
  ip: '',
  port: 0,
  asked: new Map(),
  answer: () => {},
  close: async () => {},
}

type RouterModel = {
  readonly name: string
  readonly versions: readonly { readonly version: number; readonly revisions: string[] }[]
}

/** Replicas of one model are one model, of one version. */
function merge(models: readonly RouterModel[]): readonly RouterModel[] {
  const names = [...new Set(models.map(({ name }) => name))]
  return names.map((name) => ({
    name,
    versions: [
      {
        version: 1,
        revisions: models
          .filter((model) => model.name === name)
          .flatMap(({ versions }) => versions.flatMap(({ revisions }) => revisions)),
      },
    ],
  }))
}

/** Returns the values of a flag that may be repeated. */
function valuesOf(args: readonly string[], flag: string): readonly string[] {
  return args.flatMap((arg, i) => (arg === flag ? (args[i + 1] ?? '') : []))
}

function runningStatus(pod: Stored<PodState>, podIP: string, isReady: boolean): PlainObject {
  const at = new Date().toISOString()
  const ready = isReady ? 'True' : 'False'
  const gates = (pod.spec.readinessGates ?? []).length
  const condition = (type: string, status: string) => ({ type, status, lastTransitionTime: at })
  return {
    phase: 'Running',
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: at,
    conditions: [
      condition('Initialized', 'True'),
      condition('ContainersReady', ready),
      condition('Ready', gates === 0 ? ready : 'False'),
      condition('PodScheduled', 'True'),
    ],
    containerStatuses: [
      {
        name: 'main',
        image: 'x',
        imageID: 'x',
        containerID: `test://${pod.metadata.uid}`,
        ready: isReady,
        started: isReady,
        restartCount: 0,
        state: { running: { startedAt: at } },
      },
    ],
  }
}
