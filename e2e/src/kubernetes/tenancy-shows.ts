import type { PlainObject } from '@tutti/kube/testing'
import { peerSubjects } from '@tutti/protocol'
import { connect, credsAuthenticator, Events, type NatsConnection } from 'nats'
import type { Test } from 'tap'
import { until } from '../until.ts'
import type { TuttiCluster } from './cluster.ts'

/** Two namespaces whose Models answer. */
export interface Tenants {
  readonly cluster: TuttiCluster
  readonly own: string
  readonly other: string
  /** Requests are answered in both. */
  readonly answers: (t: Test) => Promise<void>
}

const PREFIX = 'tutti'
/** Round the names of namespaces, and what NATS itself has. */
const ANYWHERE = ['>', '*', '*.>', `${PREFIX}.>`, `${PREFIX}.*.>`, `*.*.hb.*`, '_INBOX.>', '$SYS.>']
const MADE_UP = ['_INBOX.x', '$SYS.REQ.SERVER.PING', '$JS.API.INFO', '$SRV.PING', `${PREFIX}.x`]

/** With the credential that the operator wrote for one namespace nothing can be done in the other, and all in the own one. */
export async function showTenancy(all: Test, tenants: Tenants): Promise<void> {
  const { cluster, own, other, answers } = tenants
  const [intruder, insider] = await Promise.all([
    connectAs(all, cluster, own),
    connectAs(all, cluster, other),
  ])
  const heard: { readonly subject: string; readonly text: string }[] = []
  insider.connection.subscribe(`${PREFIX}.${other}.>`, {
    callback: (_error, { subject, data }) => {
      heard.push({ subject, text: Buffer.from(data).toString('latin1') })
    },
  })
  await insider.connection.flush()
  await answers(all)
  const used = await until('the other namespace has used its subjects', () => {
    const subjects = [...new Set(heard.map(({ subject }) => subject))]
    const kinds = [/\.hb\./, /\.peer\./].every((kind) => subjects.some((one) => kind.test(one)))
    return kinds ? subjects : undefined
  })

  await all.test('nothing that the other namespace uses can be heard or said', async (t) => {
    const ghost = peerSubjects({ prefix: PREFIX, repository: other })
    const theirs = [...used, ghost.heartbeat('ghost'), ghost.control('ghost'), ghost.data('ghost')]
    for (const subject of [...theirs, ...MADE_UP]) {
      t.equal(await intruder.mayPublish(subject, MARK), false, `publish ${subject}`)
      t.equal(await intruder.maySubscribe(subject), false, `subscribe ${subject}`)
      t.equal(await intruder.maySubscribe(subject, 'queue'), false, `queue at ${subject}`)
    }
    for (const subject of [...ANYWHERE, ghost.all, `${PREFIX}.${other}.inbox.>`]) {
      t.equal(await intruder.maySubscribe(subject), false, `subscribe ${subject}`)
    }
    // An answer by way of somebody of the own namespace, who is asked to send it there.
    const ping = peerSubjects({ prefix: PREFIX, repository: own }).ping(await peerOf(intruder, own))
    t.equal(await intruder.mayPublish(ping, MARK, ghost.control('ghost')), true)
    await answers(t)
    await insider.connection.flush()
    t.notOk(
      heard.some(({ text }) => text.includes(MARK)),
      'nothing of it arrived',
    )
  })

  await all.test('the own namespace is open to it', async (t) => {
    const subjects = peerSubjects({ prefix: PREFIX, repository: own })
    t.equal(await intruder.maySubscribe(subjects.all), true)
    t.equal(await intruder.maySubscribe(subjects.heartbeat('x')), true)
    t.equal(await intruder.mayPublish(subjects.ping('x'), MARK), true)
    t.equal(await insider.maySubscribe(subjects.all), false, 'and not to the other')
  })
}

const MARK = 'from the other namespace'

const nothing = (): void => {}

interface Tenant {
  readonly connection: NatsConnection
  mayPublish(subject: string, text: string, reply?: string): Promise<boolean>
  maySubscribe(subject: string, queue?: string): Promise<boolean>
}

/** Somebody of the namespace who is alive. */
async function peerOf({ connection }: Tenant, namespace: string): Promise<string> {
  const subjects = peerSubjects({ prefix: PREFIX, repository: namespace })
  for await (const { subject } of connection.subscribe(subjects.heartbeats, { max: 1 })) {
    const peer = subjects.peerOfHeartbeat(subject)
    if (peer !== undefined) return peer
  }
  throw new Error(`nobody of ${namespace} is alive`)
}

/** As a pod of the namespace: with the credential from its Secret. */
async function connectAs(t: Test, cluster: TuttiCluster, namespace: string): Promise<Tenant> {
  const path = `/api/v1/namespaces/${namespace}/secrets/tutti-nats`
  const { data }: PlainObject = await cluster.api.plain.get(path)
  const authenticator = credsAuthenticator(Buffer.from(data['nats.creds'], 'base64'))
  const inboxPrefix = `${PREFIX}.${namespace}.inbox.test`
  const servers = cluster.natsUrl
  const connection = await connect({ servers, authenticator, inboxPrefix, reconnect: false })
  t.teardown(() => connection.close())
  const refused = new Set<string>()
  void (async () => {
    for await (const { type, permissionContext } of connection.status()) {
      if (type !== Events.Error || permissionContext === undefined) continue
      refused.add(`${permissionContext.operation} ${permissionContext.subject}`)
    }
  })()
  const isTaken = async (operation: string, subject: string): Promise<boolean> => {
    // The server's answer to the flush comes behind its refusal; the status is read in a turn of its own.
    await connection.flush()
    await new Promise((resolve) => setImmediate(resolve))
    return !refused.delete(`${operation} ${subject}`)
  }
  return {
    connection,
    mayPublish: (subject, text, reply) => {
      connection.publish(subject, text, reply === undefined ? {} : { reply })
      return isTaken('publish', subject)
    },
    maySubscribe: async (subject, queue) => {
      const o = { callback: nothing, ...(queue !== undefined && { queue }) }
      const subscription = connection.subscribe(subject, o)
      const taken = await isTaken('subscription', subject)
      if (taken) subscription.unsubscribe()
      return taken
    },
  }
}
