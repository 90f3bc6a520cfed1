import type { SystemLink } from '../system-link.ts'

/** Returns a link to servers that accept every call and know no accounts. */
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
