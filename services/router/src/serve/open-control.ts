import type { Clock, Logger } from '@tutti/chassis'
import { chooseStartModels } from '@tutti/front-door'
import { isEnsembleConfig } from '@tutti/model-config'
import {
  ModelRepository,
  OverrideDirectories,
  pollRepository,
  RepositoryWatch,
} from '@tutti/repository'
import type { AnswerQuestion, RouterPeer } from '@tutti/transport'
import { RepositoryControl } from '../control/model-control.ts'
import type { ModelHosts } from '../control/model-hosts.ts'
import { RemoteHosts } from '../control/remote-hosts.ts'
import { WantedModels } from '../control/wanted-models.ts'
import { repositoryUnreadable } from '../log-events.ts'
import type { Router } from '../router.ts'
import { ControlLink } from './control-link.ts'
import type { RouterFlags } from './router-flags.ts'

/** What a router does with its repositories beside serving, by the model control mode. */
export interface ControlUpkeep {
  /** Answers `wanted`, beside what the router answers itself. */
  readonly answer: AnswerQuestion
  /** Names of all models that could be loaded. */
  names(): Promise<readonly string[]>
  /** Loads what is to be there from the start. The broker must have been joined. */
  start(): Promise<void>
  /** Goes on until the signal aborts. Resolves then. */
  follow(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface OpenControlOptions {
  readonly flags: RouterFlags
  readonly name: string
  readonly router: Router
  readonly peers: Promise<RouterPeer>
  /** True if nothing has changed at the step since it was described. */
  readonly isCurrent: (replica: string) => boolean
  readonly clock: Clock
  readonly log: Logger
}

/** Models are the steps' own affair where nobody loads them on request. */
const NO_HOSTS: ModelHosts = {
  names: async () => [],
  load: async () => {},
  unload: () => {},
}

/** Opens what the mode needs. In the mode none that is nothing: the ensembles of the start stay. */
export async function openControl(o: OpenControlOptions): Promise<ControlUpkeep> {
  const { flags, router } = o
  const mode = flags['model-control-mode']
  if (mode === 'none') {
    return {
      answer: router.answer,
      names: async () => [],
      start: async () => {},
      follow: async () => {},
      close: async () => {},
    }
  }
  const configName = flags['model-config-name']
  const repository = new ModelRepository({
    paths: flags['model-repository'],
    ...(configName !== undefined && { configName }),
  })
  await repository.open()
  return mode === 'poll' ? openPolling(o, repository) : openExplicit(o, repository)
}

function openPolling(o: OpenControlOptions, repository: ModelRepository): ControlUpkeep {
  const { flags, router, log, clock } = o
  const control = new RepositoryControl({ router, repository, hosts: NO_HOSTS, log })
  const watch = new RepositoryWatch(onlyEnsembles(repository))
  return {
    answer: router.answer,
    names: () => control.names(),
    start: async () => void (await control.loadAll(await watch.start())),
    follow: (signal) =>
      pollRepository({
        watch,
        pollMs: flags['repository-poll-secs'] * 1000,
        clock,
        signal,
        apply: (changes) => control.follow(changes),
        failed: (error) => repositoryUnreadable(log, error),
      }),
    close: () => repository.close(),
  }
}

/** Other models of a router's repository are left to the steps. */
function onlyEnsembles(repository: ModelRepository): Pick<ModelRepository, 'names' | 'take'> {
  return {
    names: async () => {
      const names = await repository.names()
      const configs = await Promise.all(names.map((name) => repository.readConfig(name)))
      return names.filter((_, i) => {
        const config = configs[i]
        return config !== undefined && isEnsembleConfig(config)
      })
    },
    take: (name, overrides) => repository.take(name, overrides),
  }
}

async function openExplicit(
  o: OpenControlOptions,
  repository: ModelRepository,
): Promise<ControlUpkeep> {
  const { flags, name, router, peers, clock, log } = o
  const directories = new OverrideDirectories()
  const wanted = new WantedModels({ by: name, directories, epochMs: () => clock.epochMs() })
  const hosts = new RemoteHosts({ peers, router, isCurrent: o.isCurrent })
  const link: ControlLink = new ControlLink({
    name,
    peers,
    router,
    control: () => control,
    hosts,
    wanted,
    clock,
    log,
  })
  const { changed } = link
  const control = new RepositoryControl({ router, repository, hosts, log, changed })
  router.allowControl(control)
  return {
    answer: (question, argument, how) =>
      question === 'wanted'
        ? link.answer(question, argument, how)
        : router.answer(question, argument, how),
    names: () => control.names(),
    start: async () => {
      await link.catchUp()
      const names = chooseStartModels(flags, await control.names())
      // What was asked for since by a client of another router holds.
      const open = names.filter((model) => wanted.get(model) === undefined)
      await control.loadAll(open, { isKept: true })
    },
    follow: (signal) => link.follow(signal),
    close: async () => {
      await directories.close()
      await repository.close()
    },
  }
}
