import type { SystemLink } from '../system-link.ts'

/** Connects to servers that take whatever they are told. */
export function openFakeLink(): Promise<SystemLink> {
  return Promise.resolve({
    listAccounts: async () => [],
    updateAccount: async () => {},
    removeAccounts: async () => {},
    reloadServers: async () => 1,
    readServers: async () => [],
    close: async () => {},
  })
}
