import type { StartedProcess } from '@tutti/chassis/testing'
import { parseLine } from '../serving.ts'

/** A router or a step, and its id on the broker. */
interface Observer {
  readonly id: string
  readonly process: Pick<StartedProcess, 'lines'>
}

/** Sight of a member: how it sees things, as its log says. */
export class Sight {
  readonly #self: Observer
  readonly #known = new Set<string>()
  readonly #connected = new Set<unknown>()
  readonly #direct = new Set<string>()
  #read = 0

  constructor(self: Observer) {
    this.#self = self
  }

  /** True if it is connected, knows exactly the members that are there, and suspects none of them. Steps know routers alone. */
  isRight(alive: ReadonlySet<string>): boolean {
    this.#look()
    const others = [...alive].filter((id) => id !== this.#self.id && this.#hears(id))
    return (
      this.#connected.size === CONNECTIONS &&
      this.#known.size === others.length &&
      others.every((id) => this.#known.has(id))
    )
  }

  /** True if it is connected directly to each of the others of the other role that are there. */
  isDirect(alive: ReadonlySet<string>): boolean {
    this.#look()
    const others = [...alive].filter((id) => isRouter(id) !== isRouter(this.#self.id))
    return others.every((id) => this.#direct.has(id))
  }

  #look(): void {
    const { lines } = this.#self.process
    for (; this.#read < lines.length; this.#read += 1) this.#take(lines[this.#read] ?? '')
  }

  #hears(id: string): boolean {
    return isRouter(this.#self.id) || isRouter(id)
  }

  #take(text: string): void {
    const { message, member, connection } = parseLine(text)
    if (message === 'broker connected') this.#connected.add(connection)
    if (message === 'broker disconnected') this.#connected.delete(connection)
    if (message === 'member appeared' || message === 'member recovered')
      this.#known.add(String(member))
    if (message === 'member is reached directly') this.#direct.add(String(member))
    if (message === NOT_DIRECT) this.#direct.delete(String(member))
    if (message === 'member is suspect' || message === 'member is gone')
      this.#known.delete(String(member))
  }
}

function isRouter(id: string): boolean {
  return id.startsWith('router-')
}

const NOT_DIRECT = 'member is not reached directly, the broker carries everything'

/** Connections of each member to the broker. */
const CONNECTIONS = 2
