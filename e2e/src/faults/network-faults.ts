import { writeFile } from 'node:fs/promises'
import { logged, mark } from '../processes/seen.ts'
import {
  AT_BROKER,
  BOTH_WAYS,
  DEADLINE_ERRORS,
  type Fault,
  PROCESSES,
  STEP_ERRORS,
} from './fault.ts'
import { CLIENTS_ADDRESS, type Host, type Loss } from './network.ts'
import { HOSTS_FILE, hostsText, type System } from './system.ts'

/** Longer than it takes until a member counts as dead. */
const CUT_MS = 6000
/** Deadline of clients that their server does not hear, or that do not hear it. */
const CUT_TIMEOUT_MS = 2500

type AtHost = (system: System) => Host

const hostOf =
  (name: string): AtHost =>
  (system) =>
    system.place(name).host
/** Finds the host that clients ask first. */
const asked: AtHost = (system) => {
  const [first] = system.targets
  if (first === undefined) throw new Error('nothing is asked')
  return first
}

/** Packets of a host are lost for a while. */
function lossy(
  name: string,
  at: AtHost,
  losses: readonly Loss[],
  o: Partial<Fault> & Pick<Fault, 'ways' | 'errors'>,
): Fault {
  return {
    name,
    withinMs: 30_000,
    heldMs: CUT_MS,
    ...o,
    strike: (system) => at(system).lose(...losses),
    undo: (system) => at(system).heal(),
  }
}

const IN = { direction: 'in' } as const
const OUT = { direction: 'out' } as const
const CUT = { ways: PROCESSES, errors: STEP_ERRORS }
const UNSEEN = { ways: PROCESSES, errors: [] }
const CUT_OFF_CLIENTS = {
  ways: BOTH_WAYS,
  errors: DEADLINE_ERRORS,
  timeoutMs: CUT_TIMEOUT_MS,
  heldMs: 4000,
}
const TO_CLIENTS = { ...OUT, other: CLIENTS_ADDRESS }
const FROM_CLIENTS = { ...IN, other: CLIENTS_ADDRESS }

export const NETWORK_FAULTS: readonly Fault[] = [
  lossy('step cut off from the network for 6 s', hostOf('step-0'), [IN, OUT], {
    ...CUT,
    isQuick: true,
  }),
  lossy('step sends, but hears nothing for 6 s', hostOf('step-0'), [IN], CUT),
  lossy('step hears, but what it sends is lost for 6 s', hostOf('step-0'), [OUT], CUT),
  lossy('NATS cut off from everyone for 6 s', hostOf('broker'), [IN, OUT], AT_BROKER),
  ...routerCuts(),
  lossy('clients and server cut off from each other for 4 s', asked, [TO_CLIENTS, FROM_CLIENTS], {
    ...CUT_OFF_CLIENTS,
  }),
  lossy('requests are lost for 4 s, answers are not', asked, [FROM_CLIENTS], CUT_OFF_CLIENTS),
  lossy('answers are lost for 4 s, requests are not', asked, [TO_CLIENTS], CUT_OFF_CLIENTS),
  ...someLost(),
  {
    name: 'step behind a link of 4 Mbit/s',
    ...UNSEEN,
    withinMs: 60_000,
    heldMs: 5000,
    strike: (system) => system.place('step-0').host.limit('4mbit'),
    undo: (system) => system.place('step-0').host.heal(),
  },
  {
    name: 'server behind a link of 4 Mbit/s',
    ways: BOTH_WAYS,
    errors: [],
    withinMs: 60_000,
    heldMs: 5000,
    strike: (system) => asked(system).limit('4mbit'),
    undo: (system) => asked(system).heal(),
  },
  relayed('packets of a step 100 to 200 ms late, overtaking one another', {
    delayMs: 100,
    jitterMs: 100,
    duplicatePercent: 0,
  }),
  relayed('every third packet of a step comes twice', {
    delayMs: 0,
    jitterMs: 10,
    duplicatePercent: 33,
  }),
  brokerMachineGone(),
  {
    name: 'name of NATS unknown for 4 s, while it is started again',
    ...AT_BROKER,
    withinMs: 30_000,
    heldMs: 4000,
    strike: async (system) => {
      await writeFile(HOSTS_FILE, hostsText())
      await system.place('broker').restart('SIGKILL')
    },
    undo: (system) => writeFile(HOSTS_FILE, hostsText(system.place('broker').host.address)),
  },
]

function routerCuts(): readonly Fault[] {
  const name = 'router-0'
  const cut = (text: string, directions: readonly ('in' | 'out')[]): Fault => {
    const losses = (system: System): readonly Loss[] =>
      directions.map((direction) => ({ direction, other: system.place('broker').host.address }))
    return {
      name: text,
      ...AT_BROKER,
      withinMs: 30_000,
      heldMs: CUT_MS,
      strike: (system) => system.place(name).host.lose(...losses(system)),
      undo: (system) => system.place(name).host.heal(),
    }
  }
  return [
    cut('router and NATS cut off from each other for 6 s', ['in', 'out']),
    cut('what NATS sends to a router is lost for 6 s', ['in']),
    cut('what a router sends to NATS is lost for 6 s', ['out']),
  ]
}

function brokerMachineGone(): Fault {
  const members = ['router-0', 'router-1', 'step-0', 'step-1']
  const marks = new Map<string, number>()
  return {
    name: 'machine of NATS gone without a word, another takes its address',
    ...AT_BROKER,
    withinMs: 60_000,
    heldMs: 2000,
    strike: async (system) => {
      const broker = system.place('broker')
      for (const name of members) marks.set(name, mark(system.place(name).process))
      // Nobody hears that its connections end.
      await broker.host.lose(IN, OUT)
      await broker.restart('SIGKILL')
    },
    undo: async (system) => {
      await system.place('broker').host.heal()
      const notice = async (name: string): Promise<void> => {
        const { process } = system.place(name)
        for (const connection of ['control', 'data']) {
          // oxlint-disable-next-line no-await-in-loop -- one after the other
          await logged(process, marks.get(name) ?? 0, 'broker disconnected', { connection })
        }
      }
      await Promise.all(members.map(notice))
    },
  }
}

function bothWays(percent: number): readonly Loss[] {
  return [
    { ...IN, percent },
    { ...OUT, percent },
  ]
}

function someLost(): readonly Fault[] {
  const slow = { withinMs: 60_000, heldMs: 5000 }
  return [
    lossy('5 % of the packets of a step lost', hostOf('step-0'), bothWays(5), {
      ...UNSEEN,
      ...slow,
    }),
    lossy('30 % of the packets of NATS lost', hostOf('broker'), bothWays(30), {
      ...AT_BROKER,
      ...slow,
    }),
    lossy('10 % of the packets of the server lost', asked, bothWays(10), {
      ways: BOTH_WAYS,
      errors: STEP_ERRORS,
      ...slow,
    }),
  ]
}

function relayed(name: string, carriage: Parameters<Host['carry']>[0]): Fault {
  return {
    name,
    ...UNSEEN,
    withinMs: 30_000,
    heldMs: 5000,
    strike: async (system) => system.place('step-1').host.carry(carriage),
    undo: (system) => system.place('step-1').host.heal(),
  }
}
