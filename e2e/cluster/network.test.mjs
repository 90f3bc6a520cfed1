import { readFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { API_ADDRESS, NODE_ADDRESS, POD_RANGE, SERVICE_RANGE } from './network.mjs'

const textOf = (file) => readFileSync(new URL(file, import.meta.url), 'utf8')
const manifestsOf = (file) => parseAllDocuments(textOf(file)).map((document) => document.toJS())

function isWithin(range, address) {
  const [network, prefix] = range.split('/')
  const list = new BlockList()
  list.addSubnet(network, Number(prefix))
  return list.check(address)
}

await test('files of the node name its addresses', (t) => {
  const [bridge] = parse(textOf('node/cni.conflist')).plugins
  t.same(bridge.ipam.ranges, [[{ subnet: POD_RANGE }]])
  const proxy = parse(textOf('node/kube-proxy.yaml'))
  t.equal(proxy.clusterCIDR, POD_RANGE)
  t.same(proxy.nodePortAddresses, [`${NODE_ADDRESS}/32`])
  t.end()
})

await test('the names of the cluster are asked where they are answered, among its Services', (t) => {
  const service = manifestsOf('manifests/dns.yaml').find(({ kind }) => kind === 'Service')
  t.same(parse(textOf('node/kubelet.yaml')).clusterDNS, [service.spec.clusterIP])
  for (const address of [service.spec.clusterIP, API_ADDRESS]) {
    t.ok(isWithin(SERVICE_RANGE, address), address)
  }
  t.end()
})

await test('ports of the ingress controller are those that the tests ask at', (t) => {
  const service = manifestsOf('manifests/ingress.yaml').find(({ kind }) => kind === 'Service')
  const ports = service.spec.ports.map(({ nodePort }) => nodePort)
  const { http, https } = parse(
    /INGRESS = (\{.+\}) as const/.exec(textOf('../src/cluster/kubectl.ts'))[1],
  )
  t.same([http, https], ports)
  t.end()
})
