import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { type Asker, askGrpc, askRest, type Question } from './edge-client.ts'

/** Between an error and the next question, as a client that tries again would wait. */
const RETRY_MS = 50
const MORE_ANSWERS = 5

/** Clients outside of the cluster, each of which asks one thing after the other and compares every byte. */
export class Load {
  readonly #clients: readonly Asking[]
  readonly #thinkMs: number
  readonly #moreAnswers: number
  #problems: string[] = []
  #accepted: readonly Uint8Array[]
  #asked = 0
  #isStopped = false
  readonly #ended: Promise<unknown>

  /**
   * Starts so many clients of each protocol; they end with the test.
   *
   * @param o.answer - the right one, until another is accepted.
   * @param o.thinkMs - between an answer and the next question; 0 if absent.
   * @param o.moreAnswers - of each client before and after what `during` does; fewer where an answer takes long.
   */
  constructor(
    t: Test,
    question: Question,
    o: {
      readonly grpc: number
      readonly rest: number
      readonly answer: Uint8Array
      readonly thinkMs?: number
      readonly moreAnswers?: number
    },
  ) {
    this.#accepted = [o.answer]
    this.#thinkMs = o.thinkMs ?? 0
    this.#moreAnswers = o.moreAnswers ?? MORE_ANSWERS
    this.#clients = [
      ...Array.from({ length: o.grpc }, () => askGrpc(t, question)),
      ...Array.from({ length: o.rest }, () => askRest(t, question)),
    ].map((ask) => ({ ask, right: 0, last: Uint8Array.of(), inARow: 0 }))
    this.#ended = Promise.all(this.#clients.map((client) => this.#run(client)))
    t.teardown(() => this.stop())
  }

  /** Requests that were asked so far. */
  get asked(): number {
    return this.#asked
  }

  /** Whether something else than a right answer came since the last call of `during`. */
  get hasProblems(): boolean {
    return this.#problems.length > 0
  }

  /** From now on these answers are right, and no others. */
  accept(...answers: readonly Uint8Array[]): void {
    this.#accepted = answers
  }

  /**
   * Does something to the cluster; then waits until each client has some right answers more.
   *
   * @returns what came instead of right answers since the last call; an error is `PROTOCOL CODE: details`.
   */
  async during(work: () => Promise<unknown>): Promise<readonly string[]> {
    await this.#more()
    await work()
    await this.#more()
    return this.#problems.splice(0)
  }

  /** Waits until what is asked leads to where it is answered: nothing that came before counts. */
  async begin(): Promise<void> {
    await until('no request fails', async () => (await this.during(async () => {})).length === 0)
  }

  /** Waits until each client has had this answer some times without another in between; it is the right one from then on. */
  async settleOn(answer: Uint8Array): Promise<void> {
    await until('each client has the new answer', () =>
      this.#clients.every(({ last, inARow }) => inARow >= MORE_ANSWERS && isSame(last, answer)),
    )
    this.#accepted = [answer]
  }

  /** Lets each client finish its request. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#ended
  }

  async #run(client: Asking): Promise<void> {
    while (!this.#isStopped) {
      this.#asked += 1
      const outcome = await client.ask()
      if ('problem' in outcome) {
        this.#problems.push(outcome.problem)
        await delay(RETRY_MS)
        continue
      }
      this.#take(client, outcome.bytes)
      await delay(this.#thinkMs)
    }
  }

  #take(client: Asking, bytes: Uint8Array): void {
    if (this.#accepted.some((answer) => isSame(answer, bytes))) client.right += 1
    else this.#problems.push(`wrong answer: ${Buffer.from(bytes).toString('hex')}`)
    client.inARow = isSame(client.last, bytes) ? client.inARow + 1 : 1
    client.last = bytes
  }

  async #more(): Promise<void> {
    const before = this.#clients.map(({ right }) => right)
    await until(
      () => `each client has more answers; what came instead: ${this.#problems.slice(-3).join()}`,
      () => this.#clients.every(({ right }, i) => right >= (before[i] ?? 0) + this.#moreAnswers),
    )
  }
}

/** Returns a subtest for something that is done under load: not one request fails or has another answer. */
export function showUnderLoad(parent: Test, load: Load) {
  return (name: string, work: (t: Test) => Promise<unknown>): Promise<unknown> =>
    parent.test(name, async (t) => {
      const before = load.asked
      t.same([...countEach(await load.during(() => work(t)))], [])
      t.comment(`${load.asked - before} requests`)
    })
}

/** Counts equal texts. */
export function countEach(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

/** One client: its right answers so far, the last answer, and how often that came without another in between. */
interface Asking {
  readonly ask: Asker
  right: number
  last: Uint8Array
  inARow: number
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
