import { execFileSync } from 'node:child_process'
import { SetupFailure } from '../../scripts/setup/failure.mjs'

/** Addresses of the node. Files in node/ and manifests/ name them too, which network.test.mjs holds to these. */
export const POD_RANGE = '10.244.0.0/16'
export const SERVICE_RANGE = '10.96.0.0/16'
const LINK_RANGE = '10.245.0.0/16'
export const HOST_ADDRESS = '10.245.0.1'
export const NODE_ADDRESS = '10.245.0.2'
/** The first address of SERVICE_RANGE: that of the API server, for pods. */
export const API_ADDRESS = '10.96.0.1'

const RANGES = [POD_RANGE, LINK_RANGE, SERVICE_RANGE]
/** This machine's end of the one way to the node. */
const LINK = 'tutti-node'
/** Behind every route that leads somewhere. */
const GUARD_METRIC = '4000'

/**
 * Sees to it that no packet for a pod, a Service or the node leaves the machine by its default route while there is no node:
 * these routes come before anything else, and stay.
 *
 * @throws SetupFailure if the machine has another use for one of the ranges.
 */
export function guardRanges() {
  for (const range of RANGES) {
    const other = ['root', 'match'].flatMap((which) => routes(which, range)).find(isForeign)
    if (other === undefined) continue
    throw new SetupFailure(
      `A node needs the addresses ${RANGES.join(', ')}, and this machine has a route to ${other.dst} by ${other.dev}.`,
    )
  }
  for (const range of RANGES) ip('route', 'replace', 'unreachable', range, 'metric', GUARD_METRIC)
}

/** Those within a range (`root`), or of ranges around it (`match`). */
function routes(which, range) {
  return JSON.parse(ip('-json', 'route', 'show', which, range))
}

function isForeign({ dst, dev, type }) {
  return type !== 'unreachable' && dev !== LINK && dst !== 'default'
}

/** Whether the link to a node is there. */
export function isLinked() {
  return JSON.parse(ip('-json', 'link', 'show')).some(({ ifname }) => ifname === LINK)
}

/** Joins this machine with the node, whose process 1 is `pid`: by its addresses, pods and Services are reached from here. */
export function connect(pid) {
  ip('link', 'add', LINK, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid))
  ip('address', 'add', `${HOST_ADDRESS}/30`, 'dev', LINK)
  ip('link', 'set', LINK, 'up')
  for (const range of [POD_RANGE, SERVICE_RANGE]) {
    ip('route', 'add', range, 'via', NODE_ADDRESS, 'dev', LINK, 'onlink')
  }
}

/** The node's end goes with its namespace, and takes this one along; not always at once. */
export function disconnect() {
  try {
    ip('link', 'delete', LINK)
  } catch {
    // It has gone.
  }
}

function ip(...args) {
  return execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
