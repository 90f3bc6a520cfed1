import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { OverrideDirectories } from '@tutti/repository'
import t, { type Test } from 'tap'
import { WantedModels } from '../control/wanted-models.ts'
import { ControlLink } from './control-link.ts'

type Files = ReadonlyMap<string, Uint8Array>

const NO_FILES: Files = new Map()
const { signal: quiet } = new AbortController()

/** Routers by name, as they find one another. */
class Routers {
  readonly links = new Map<string, ControlLink>()
  /** Those that cannot be asked. */
  readonly refuse = new Set<string>()
  /** Steps that all of them hear of: what they load on request. */
  readonly steps = new Map<string, readonly string[]>()
  /** What happens while a step loads. */
  loading = async (): Promise<void> => {}

  open(t: Test, name: string) {
    const { links, steps, refuse } = this
    const lines: string[] = []
    const did: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const clock = createManualClock()
    const directories = new OverrideDirectories({ parent: t.testdir({}) })
    t.teardown(() => directories.close())
    const wanted = new WantedModels({ by: name, directories, epochMs: () => clock.epochMs() })
    const link = new ControlLink({
      name,
      clock,
      wanted,
      log: createLogger({ level: 'info', name: 'test', destination }),
      peers: Promise.resolve({
        routers: () => [...links.keys()].filter((other) => other !== name),
        ask: async (router, question, argument, { files = NO_FILES }) => {
          const other = links.get(router)
          if (other === undefined || refuse.has(router)) {
            throw new ServeError('STEP_LOST', 'cut off')
          }
          const sent: unknown = JSON.parse(JSON.stringify(argument))
          return other.answer(question, sent, { files, signal: quiet })
        },
      }),
      router: {
        loadable: () =>
          new Map([...steps].map(([step, names]) => [step, { names, isOpen: false, awaited: [] }])),
        offers: () => false,
      },
      control: () => ({
        adopt: ({ name: model, isLoaded }) =>
          void did.push(`${isLoaded ? 'adopt' : 'drop'} ${model}`),
      }),
      hosts: {
        unloadAt: async (step, model) => void did.push(`unload ${model} at ${step}`),
        loadAt: async (step, model) => {
          did.push(`load ${model} at ${step}`)
          await this.loading()
        },
      },
    })
    links.set(name, link)
    const messages = () => lines.map((line) => JSON.parse(line))
    return { link, wanted, did, clock, messages }
  }
}

/** Lets what is due run, files written and read among it. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

const loads = (did: readonly string[]) => did.filter((one) => one.startsWith('load'))

const LOADED = { name: 'm', isLoaded: true, isExplicit: true }

await t.test('what one router was asked for, every other adopts once', async (t) => {
  const routers = new Routers()
  const [a, b] = [routers.open(t, 'a'), routers.open(t, 'b')]
  const files = new Map([['1/f', Buffer.from('x')]])
  await a.link.changed({ ...LOADED, parameters: { config: '{}', files } })
  t.same([a.did, b.did], [[], ['adopt m']], 'the one that was asked has done it')
  t.match(b.wanted.get('m'), { name: 'm', config: '{}', by: 'a' })
  t.same([...(await b.wanted.files('m')).keys()], ['1/f'])
  await b.link.changed({ ...LOADED, isLoaded: false })
  t.same(a.did, ['drop m'])
  const stale = { ...a.wanted.stamp(LOADED), at: 1 }
  t.equal(await a.wanted.take(stale), false, 'the last request holds')
})

await t.test('a router that comes later hears of all that was asked for', async (t) => {
  const routers = new Routers()
  const a = routers.open(t, 'a')
  await a.link.changed(LOADED)
  await a.link.changed({ ...LOADED, name: 'n', isLoaded: false })
  const late = routers.open(t, 'late')
  await late.link.catchUp()
  t.same(late.did, ['adopt m', 'drop n'])
})

await t.test('a router that cannot be told is a line in the log', async (t) => {
  const routers = new Routers()
  const a = routers.open(t, 'a')
  routers.open(t, 'b')
  routers.refuse.add('b')
  await a.link.changed(LOADED)
  t.match(a.messages(), [{ level: 'warn', router: 'b', reason: 'STEP_LOST', error: 'cut off' }])
})

await t.test('the first router by name brings a step there that comes later', async (t) => {
  const routers = new Routers()
  const [a, b] = [routers.open(t, 'a'), routers.open(t, 'b')]
  await b.link.changed(LOADED)
  await b.link.changed({ ...LOADED, name: 'elsewhere' })
  const closing = new AbortController()
  const followed = [a, b].map(({ link }) => link.follow(closing.signal))
  routers.steps.set('s1', ['m', 'other'])
  for (const { clock } of [a, b]) clock.advance(250)
  await until(() => a.did.includes('load m at s1'))
  for (const { clock } of [a, b]) clock.advance(250)
  await until(() => a.clock.pending === 1)
  closing.abort()
  await Promise.all(followed)
  t.same(loads(a.did), ['load m at s1'], 'once, and only what the step loads on request')
  t.same(loads(b.did), [])
})

await t.test('a step is not told what was taken back while it loaded another model', async (t) => {
  const routers = new Routers()
  const { link, did, clock } = routers.open(t, 'a')
  await link.changed(LOADED)
  await link.changed({ ...LOADED, name: 'n' })
  routers.loading = () => link.changed({ ...LOADED, name: 'n', isLoaded: false })
  const closing = new AbortController()
  const followed = link.follow(closing.signal)
  routers.steps.set('s1', ['m', 'n'])
  for (let look = 0; look < 2; look += 1) {
    clock.advance(250)
    await until(() => clock.pending === 1 && did.length > 0)
  }
  closing.abort()
  await followed
  t.same(did, ['load m at s1'])
})

await t.test('what is not a wanted model is refused', async (t) => {
  const { link } = new Routers().open(t, 'a')
  const how = { files: NO_FILES, signal: quiet }
  for (const argument of [null, 'x', { model: 7 }, {}]) {
    const refused = await link.answer('wanted', argument, how).catch((error: unknown) => error)
    t.match(refused, { reason: 'MALFORMED_MESSAGE' })
  }
})
