type Settings = Readonly<Record<string, string | undefined>>;

/** Who the app is to Microsoft Entra. */
export interface Identity {
  /** A token for `scope`, kept and renewed behind this call. `expiresAt` is ms since 1970. Throws why there is none. */
  tokenFor(scope: string, signal?: AbortSignal): Promise<{ readonly token: string; readonly expiresAt: number }>;
}

/** The identity that the section of connection `name` chooses by its client id and kind, else the app's own. */
export function identityFor(name: string, settings: Settings): Identity {
  const clientId = settings[`${name}__clientId`];
  const kind = settings[`${name}__credential`];
  let credential: ReturnType<typeof createCredential> | undefined;
  return {
    async tokenFor(scope, signal) {
      credential ??= createCredential(clientId, kind);
      const token = await (await credential).getToken(scope, signal ? { abortSignal: signal } : {});
      if (token === null) throw new Error('the identity gave no token');
      return { token: token.token, expiresAt: token.expiresOnTimestamp };
    },
  };
}

async function createCredential(clientId: string | undefined, kind: string | undefined) {
  const { anyIdentity, managedIdentity } = await import('../../identity.ts');
  return kind?.toLowerCase() === 'managedidentity' ? managedIdentity(clientId) : anyIdentity(clientId);
}
