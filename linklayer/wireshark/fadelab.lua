--[[
Wireshark's view of fadelab's frames: SLACP (LINKTYPE_USER0), bare frames (LINKTYPE_USER1), link ARQ (LINKTYPE_USER5)
and slacp-adaptive (LINKTYPE_USER6).

Read first: docs/slacp.md, docs/arq.md and docs/adaptive.md, whose names the fields have; README.md says how to load
this file.

Rules: what a check does not cover is not believed. A frame whose header check fails is shown as octets; one whose
CRC-32 fails tells its header and no more. A packet is handed to IP once: a retransmission of a packet that was heard
intact before points there instead, else TCP's analysis would see segments the hosts never sent twice. The info
column says the same words as the comments of a capture (linklayer/slacp/describe.py).

Left out: sessions (a tag keeps them apart), and rebuilding packets from redundancy.

Written for Lua 5.2 to 5.4; tested with Wireshark 4.0, which has 5.2.
]]

local TYPE_DATA, TYPE_FEC, TYPE_SYNC, TYPE_ACK, TYPE_HELLO = 1, 2, 3, 4, 5
local HEADER_BYTES, CRC_BYTES, BLOCK_BYTES, HELLO_BYTES = 20, 4, 4, 4
local NUMBERS = 2 ^ 32

-- checks ----------------------------------------------------------------------------------------------------

-- bit32 left Lua with 5.4, `bit` is Wireshark's own, and operators are a syntax error before 5.3
local bits = bit32 or bit or load([[return {
    bxor = function(a, b) return a ~ b end,
    band = function(a, b) return a & b end,
    rshift = function(a, n) return a >> n end,
}]])()
local bxor, band, rshift = bits.bxor, bits.band, bits.rshift
local byte = string.byte

local CRC32 = {}
for octet = 0, 255 do
    local rest = octet
    for _ = 1, 8 do
        rest = band(rest, 1) == 1 and bxor(rshift(rest, 1), 0xEDB88320) or rshift(rest, 1)
    end
    CRC32[octet] = rest
end

--- The CRC-32 of Ethernet over a string.
local function crc32(octets)
    local rest = 0xFFFFFFFF
    for i = 1, #octets do
        rest = bxor(CRC32[band(bxor(rest, byte(octets, i)), 0xFF)], rshift(rest, 8))
    end
    return bxor(rest, 0xFFFFFFFF) % NUMBERS
end

--- CRC-16/CCITT over a string: polynomial 0x1021, start 0xFFFF, not reflected.
local function crc16(octets)
    local rest = 0xFFFF
    for i = 1, #octets do
        rest = bxor(rest, byte(octets, i) * 256)
        for _ = 1, 8 do
            rest = rest >= 0x8000 and band(bxor(rest * 2, 0x1021), 0xFFFF) or rest * 2
        end
    end
    return rest
end

-- names -----------------------------------------------------------------------------------------------------

local slacp = Proto("slacp", "SLACP")
local bare = Proto("bareframe", "Bare Frame")
local arq = Proto("linkarq", "Link ARQ")
local adaptive = Proto("adaptive", "SLACP Adaptive")

local TYPES = {
    [TYPE_DATA] = "DATA", [TYPE_FEC] = "FEC", [TYPE_SYNC] = "SYNC", [TYPE_ACK] = "ACK", [TYPE_HELLO] = "HELLO",
}
local STATUS = { [0] = "Bad", [1] = "Good" }

local f = {
    version = ProtoField.uint8("slacp.version", "Version", base.DEC, nil, 0xF0),
    type = ProtoField.uint8("slacp.type", "Type", base.DEC, TYPES, 0x0F),
    channel = ProtoField.uint8("slacp.channel", "Channel", base.DEC, nil, 0xF0),
    flags = ProtoField.uint8("slacp.flags", "Flags", base.HEX, nil, 0x0F),
    retransmission = ProtoField.bool("slacp.flags.retransmission", "Retransmission", 8, nil, 0x01),
    in_block = ProtoField.bool("slacp.flags.block", "In a block", 8, nil, 0x02),
    repeated = ProtoField.bool("slacp.flags.repeat", "Repeat", 8, nil, 0x04),
    established = ProtoField.bool("slacp.flags.established", "Established", 8, nil, 0x08),
    length = ProtoField.uint16("slacp.length", "Body length"),
    tag = ProtoField.uint32("slacp.tag", "Tag", base.HEX),
    tx = ProtoField.uint32("slacp.tx", "Transmission"),
    seq = ProtoField.uint32("slacp.seq", "Packet"),
    back = ProtoField.uint16("slacp.back", "Back"),
    base = ProtoField.uint32("slacp.base", "Base"),
    block = ProtoField.uint16("slacp.block", "Block"),
    index = ProtoField.uint8("slacp.index", "Index"),
    actual = ProtoField.uint8("slacp.actual", "Packets in the block"),
    redundancy = ProtoField.uint8("slacp.redundancy", "Redundancy frame"),
    symbol = ProtoField.bytes("slacp.symbol", "Redundancy symbol"),
    tx_high = ProtoField.uint32("slacp.tx_high", "Highest transmission seen"),
    cum = ProtoField.uint32("slacp.cum", "All below"),
    bitmap = ProtoField.bytes("slacp.bitmap", "Bitmap"),
    received = ProtoField.string("slacp.received", "Received beyond"),
    missing = ProtoField.uint32("slacp.missing", "Missing"),
    ident = ProtoField.uint32("slacp.ident", "Ident", base.HEX),
    offer = ProtoField.uint32("slacp.offer", "Offer", base.HEX),
    echo = ProtoField.uint32("slacp.echo", "Echo", base.HEX),
    first = ProtoField.uint32("slacp.first", "First number"),
    check = ProtoField.uint16("slacp.check", "Header check", base.HEX),
    check_status = ProtoField.uint8("slacp.check.status", "Header check status", base.DEC, STATUS),
    crc = ProtoField.uint32("slacp.crc", "CRC-32", base.HEX),
    crc_status = ProtoField.uint8("slacp.crc.status", "CRC-32 status", base.DEC, STATUS),
    octets = ProtoField.bytes("slacp.octets", "Octets without a valid CRC"),
    padding = ProtoField.bytes("slacp.padding", "Padding"),
    earlier = ProtoField.framenum("slacp.earlier", "Packet came before in", base.NONE, frametype.RETRANS_PREV),
    later = ProtoField.framenum("slacp.later", "Packet comes again in", base.NONE, frametype.RETRANS_NEXT),
}
local b = {
    crc = ProtoField.uint32("bareframe.crc", "CRC-32", base.HEX),
    crc_status = ProtoField.uint8("bareframe.crc.status", "CRC-32 status", base.DEC, STATUS),
    octets = ProtoField.bytes("bareframe.octets", "Octets without a valid CRC"),
}
local a = {
    kind = ProtoField.uint8("linkarq.kind", "Kind", base.HEX, {
        [0xA0] = "DATA", [0xA1] = "DATA", [0xB0] = "FRAGMENT", [0xB1] = "FRAGMENT", [0xAF] = "ACK",
    }),
    session = ProtoField.uint16("linkarq.session", "Session", base.HEX),
    seq = ProtoField.uint32("linkarq.seq", "Packet"),
    base = ProtoField.uint32("linkarq.base", "Base"),
    before = ProtoField.uint64("linkarq.before", "Received before it", base.HEX),
    copy = ProtoField.uint8("linkarq.copy", "Copies before"),
    index = ProtoField.uint8("linkarq.index", "Index"),
    data = ProtoField.uint8("linkarq.data", "Fragments that suffice"),
    total = ProtoField.uint8("linkarq.total", "Fragments"),
    length = ProtoField.uint16("linkarq.length", "Octets of the packet"),
    fragment = ProtoField.bytes("linkarq.fragment", "Fragment"),
    crc = ProtoField.uint32("linkarq.crc", "CRC-32", base.HEX),
    crc_status = ProtoField.uint8("linkarq.crc.status", "CRC-32 status", base.DEC, STATUS),
    octets = ProtoField.bytes("linkarq.octets", "Octets without a valid CRC"),
}
local d = {
    kind = ProtoField.uint8("adaptive.kind", "Kind", base.HEX, {
        [0xC0] = "DATA", [0xC1] = "DATA", [0xC2] = "CODED", [0xC3] = "CODED", [0xC4] = "MARK", [0xC5] = "ACK",
    }),
    session = ProtoField.uint16("adaptive.session", "Session", base.HEX),
    tx = ProtoField.uint32("adaptive.tx", "Transmission"),
    base = ProtoField.uint32("adaptive.base", "Base"),
    patience = ProtoField.uint16("adaptive.patience", "Patience in ms"),
    heard = ProtoField.uint8("adaptive.heard", "Lost acknowledgements in 1/255"),
    seq = ProtoField.uint32("adaptive.seq", "Packet"),
    first = ProtoField.uint32("adaptive.first", "First member"),
    members = ProtoField.uint64("adaptive.members", "Members", base.HEX),
    member = ProtoField.uint32("adaptive.member", "Member"),
    index = ProtoField.uint8("adaptive.index", "Index"),
    symbol = ProtoField.bytes("adaptive.symbol", "Combination"),
    count = ProtoField.uint8("adaptive.count", "Count"),
    top = ProtoField.uint32("adaptive.top", "Highest packet"),
    frames = ProtoField.bytes("adaptive.frames", "Transmissions received before"),
    packets = ProtoField.bytes("adaptive.packets", "Packets received before"),
    lost = ProtoField.uint32("adaptive.lost", "Lost transmission"),
    missing = ProtoField.uint32("adaptive.missing", "Missing packet"),
    crc = ProtoField.uint32("adaptive.crc", "CRC-32", base.HEX),
    crc_status = ProtoField.uint8("adaptive.crc.status", "CRC-32 status", base.DEC, STATUS),
    octets = ProtoField.bytes("adaptive.octets", "Octets without a valid CRC"),
}
slacp.fields, bare.fields, arq.fields, adaptive.fields = f, b, a, d

local function problem(name, text, group)
    return ProtoExpert.new(name, text, group, expert.severity.ERROR)
end

local e = {
    short = problem("slacp.short", "Too short for a frame", expert.group.MALFORMED),
    check = problem("slacp.check.bad", "Header check failed: not to be believed at all", expert.group.CHECKSUM),
    crc = problem("slacp.crc.bad", "CRC-32 failed: only the header is to be believed", expert.group.CHECKSUM),
    cut = problem("slacp.cut", "The frame ends before its body does", expert.group.MALFORMED),
    kind = problem("slacp.type.unknown", "Unknown version or type", expert.group.PROTOCOL),
    body = problem("slacp.body.bad", "The body does not fit the type", expert.group.MALFORMED),
    packet = problem("slacp.packet.bad", "The packet is malformed", expert.group.MALFORMED),
    resent = ProtoExpert.new(
        "slacp.retransmitted", "Retransmission", expert.group.SEQUENCE, expert.severity.NOTE),
}
local bare_e = {
    short = problem("bareframe.short", "Too short for a frame", expert.group.MALFORMED),
    crc = problem("bareframe.crc.bad", "CRC-32 failed", expert.group.CHECKSUM),
    packet = problem("bareframe.packet.bad", "The packet is malformed", expert.group.MALFORMED),
}
local arq_e = {
    short = problem("linkarq.short", "Too short for a frame", expert.group.MALFORMED),
    crc = problem("linkarq.crc.bad", "CRC-32 failed", expert.group.CHECKSUM),
    kind = problem("linkarq.kind.unknown", "Unknown kind, or an acknowledgement of another size", expert.group.PROTOCOL),
    fragment = problem("linkarq.fragment.bad", "A fragment that cannot be", expert.group.MALFORMED),
    packet = problem("linkarq.packet.bad", "The packet is malformed", expert.group.MALFORMED),
}
local adaptive_e = {
    short = problem("adaptive.short", "Too short for a frame", expert.group.MALFORMED),
    crc = problem("adaptive.crc.bad", "CRC-32 failed", expert.group.CHECKSUM),
    kind = problem("adaptive.kind.unknown", "Unknown kind", expert.group.PROTOCOL),
    body = problem("adaptive.body.bad", "Contents that cannot be", expert.group.MALFORMED),
    packet = problem("adaptive.packet.bad", "The packet is malformed", expert.group.MALFORMED),
}
slacp.experts, bare.experts, arq.experts, adaptive.experts = e, bare_e, arq_e, adaptive_e

-- packets ---------------------------------------------------------------------------------------------------

local IP = { [4] = Dissector.get("ip"), [6] = Dissector.get("ipv6") }
local DATA = Dissector.get("data")

--- Hand the packet in `range` to IP, and put `words` in front of what that says.
local function hand_over(range, pinfo, root, tree, words, malformed)
    local name = tostring(pinfo.cols.protocol)
    local dissector = range:len() > 0 and IP[range(0, 1):bitfield(0, 4)]
    if not dissector then
        if range:len() > 0 then
            DATA:call(range:tvb(), pinfo, root)
        end
        return
    end
    local ok = pcall(dissector.call, dissector, range:tvb(), pinfo, root)
    if ok then
        pinfo.cols.protocol:prepend(name .. "/")
        pinfo.cols.info:prepend(words .. " | ")
    else
        tree:add_proto_expert_info(malformed)
        pinfo.cols.protocol = name
        pinfo.cols.info = words .. " | malformed packet"
    end
end

-- where packets came before -----------------------------------------------------------------------------------

--- frame numbers by frame number, and by packet the frame it came in last, and the one whose packet IP was given
local earlier, later, last, given = {}, {}, {}, {}

function slacp.init()
    earlier, later, last, given = {}, {}, {}, {}
end

--- Take notice of an intact packet; whether IP is to have it.
local function notice(pinfo, tree, tag, channel, seq)
    local packet = string.format("%x/%d/%d", tag, channel, seq)
    local number = pinfo.number
    if not pinfo.visited then
        local before = last[packet]
        if before and before ~= number then
            earlier[number], later[before] = before, number
        end
        last[packet] = number
        given[packet] = given[packet] or number
    end
    if earlier[number] then
        tree:add(f.earlier, earlier[number]):set_generated()
    end
    if later[number] then
        tree:add(f.later, later[number]):set_generated()
    end
    return given[packet] == number
end

-- the five types ----------------------------------------------------------------------------------------------

local function on_channel(channel)
    return channel > 0 and " of channel " .. channel or ""
end

local function dissect_data(frame)
    local tvb, tree, body = frame.tvb, frame.tree, frame.body
    local seq, again = tvb(12, 4):uint(), tvb(1, 1):bitfield(7, 1) == 1
    local in_block = again and tvb(1, 1):bitfield(6, 1) == 1
    tree:add(f.tx, tvb(8, 4))
    tree:add(f.seq, tvb(12, 4))
    tree:add(f.back, tvb(16, 2))
    tree:add(f.base, tvb(12, 6), (seq - tvb(16, 2):uint()) % NUMBERS):set_generated()
    local words = "packet " .. seq .. on_channel(frame.channel)
    if again then
        words = "retransmission of " .. words
        tree:add_proto_expert_info(e.resent)
    end
    if not body then
        return "damaged, " .. words
    end
    local at = 0
    if in_block then
        if body:len() < BLOCK_BYTES then
            tree:add_proto_expert_info(e.body)
            return "not a frame: data frame without its block fields"
        end
        tree:add(f.block, body(0, 2))
        tree:add(f.index, body(2, 1))
        words = words .. ", in block " .. body(0, 2):uint()
        at = BLOCK_BYTES
    end
    local first = notice(frame.pinfo, tree, frame.tag, frame.channel, seq)
    if first and body:len() > at then
        frame.packet = body(at)
    end
    return words
end

local function dissect_fec(frame)
    local tvb, tree, body = frame.tvb, frame.tree, frame.body
    tree:add(f.tx, tvb(8, 4))
    tree:add(f.base, tvb(12, 4))
    tree:add(f.block, tvb(16, 2))
    if not body then
        return "damaged, FEC" .. on_channel(frame.channel)
    end
    if body:len() < BLOCK_BYTES then
        tree:add_proto_expert_info(e.body)
        return "not a frame: redundancy frame without its block fields"
    end
    local actual, index = body(0, 1):uint(), body(1, 1):uint()
    tree:add(f.actual, body(0, 1))
    tree:add(f.index, body(1, 1))
    if actual < 1 or index < actual then
        tree:add_proto_expert_info(e.body)
        return string.format("not a frame: redundancy frame %d of %d: cannot be", index, actual)
    end
    tree:add(f.redundancy, body(0, 2), index - actual + 1):set_generated()
    if body:len() > BLOCK_BYTES then
        tree:add(f.symbol, body(BLOCK_BYTES))
    end
    return string.format("FEC %d of block %d%s (%d packet%s)",
        index - actual + 1, tvb(16, 2):uint(), on_channel(frame.channel), actual, actual == 1 and "" or "s")
end

local function dissect_sync(frame)
    local tvb, tree = frame.tvb, frame.tree
    tree:add(f.tx, tvb(8, 4))
    tree:add(f.base, tvb(12, 4))
    if not frame.body then
        return "damaged, SYNC" .. on_channel(frame.channel)
    end
    return "SYNC from " .. tvb(12, 4):uint() .. on_channel(frame.channel)
end

--- The numbers of a bitmap behind `cum` as (received in words, how many, the missing ones among them).
local function read_bitmap(bitmap, cum)
    local spans, missing, count, from = {}, {}, 0, nil
    local octets = bitmap:raw()
    local highest = -1
    local set = {}
    for j = 1, #octets do
        local octet = byte(octets, j)
        for i = 0, 7 do
            if octet % 2 == 1 then
                highest = 8 * (j - 1) + i
                set[highest] = true
                count = count + 1
            end
            octet = math.floor(octet / 2)
        end
    end
    for i = 0, highest do
        local number = (cum + i) % NUMBERS
        if not set[i] then
            missing[#missing + 1] = number
        else
            from = from or number
            if not set[i + 1] then
                spans[#spans + 1] = from == number and string.format("%d", from)
                    or string.format("%d-%d", from, number)
                from = nil
            end
        end
    end
    return table.concat(spans, ", "), count, missing
end

local function dissect_ack(frame)
    local tvb, tree, body = frame.tvb, frame.tree, frame.body
    tree:add(f.tx_high, tvb(8, 4))
    tree:add(f.cum, tvb(12, 4))
    if not body then
        return "not a frame: CRC failed"
    end
    local cum, beyond = tvb(12, 4):uint(), ""
    if body:len() > 0 then
        tree:add(f.bitmap, body())
        local received, count, missing = read_bitmap(body, cum)
        tree:add(f.received, body(), received):set_generated()
        for _, number in ipairs(missing) do
            tree:add(f.missing, body(), number):set_generated()
        end
        beyond = count > 0 and string.format(" and %d beyond", count) or ""
    end
    local again = tvb(1, 1):bitfield(5, 1) == 1 and ", repeated" or ""
    return "ACK below " .. cum .. beyond .. on_channel(frame.channel) .. again
end

local function dissect_hello(frame)
    local tvb, tree, body = frame.tvb, frame.tree, frame.body
    tree:add(f.echo, tvb(4, 4))
    tree:add(f.ident, tvb(8, 4))
    tree:add(f.offer, tvb(12, 4))
    if not body then
        return "not a frame: CRC failed"
    end
    if body:len() ~= HELLO_BYTES then
        tree:add_proto_expert_info(e.body)
        return "not a frame: hello frame of the wrong length"
    end
    tree:add(f.first, body())
    return tvb(1, 1):bitfield(4, 1) == 1 and "HELLO, established" or "HELLO"
end

local DISSECT = {
    [TYPE_DATA] = dissect_data,
    [TYPE_FEC] = dissect_fec,
    [TYPE_SYNC] = dissect_sync,
    [TYPE_ACK] = dissect_ack,
    [TYPE_HELLO] = dissect_hello,
}

-- the frame -----------------------------------------------------------------------------------------------------

--- Show octets that are no frame.
local function refuse(tvb, pinfo, tree, proto_expert, words)
    tree:add_proto_expert_info(proto_expert)
    tree:add(f.octets, tvb())
    pinfo.cols.info = "not a frame: " .. words
end

function slacp.dissector(tvb, pinfo, root)
    local nbytes = tvb:len()
    pinfo.cols.protocol = "SLACP"
    if nbytes == 0 then
        pinfo.cols.info = "not a frame: 0 octets: too short for a frame"
        return 0
    end
    local tree = root:add(slacp, tvb())
    if nbytes < HEADER_BYTES + CRC_BYTES then
        refuse(tvb, pinfo, tree, e.short, nbytes .. " octets: too short for a frame")
        return nbytes
    end
    if crc16(tvb:raw(0, HEADER_BYTES - 2)) ~= tvb(18, 2):uint() then
        tree:add(f.check_status, tvb(18, 2), 0):set_generated()
        refuse(tvb, pinfo, tree, e.check, "header check failed")
        return nbytes
    end
    local kind, length = tvb(0, 1):bitfield(4, 4), tvb(2, 2):uint()
    tree:add(f.version, tvb(0, 1))
    tree:add(f.type, tvb(0, 1))
    if tvb(0, 1):bitfield(0, 4) ~= 1 or not DISSECT[kind] then
        refuse(tvb, pinfo, tree, e.kind, string.format("unknown version or type 0x%02x", tvb(0, 1):uint()))
        return nbytes
    end
    tree:add(f.channel, tvb(1, 1))
    local flags = tree:add(f.flags, tvb(1, 1))
    for _, flag in ipairs({ f.retransmission, f.in_block, f.repeated, f.established }) do
        flags:add(flag, tvb(1, 1))
    end
    tree:add(f.length, tvb(2, 2))
    if kind ~= TYPE_HELLO then
        tree:add(f.tag, tvb(4, 4))
    end

    local ends_at = HEADER_BYTES + length
    local whole = ends_at + CRC_BYTES <= nbytes
    local good = whole and crc32(tvb:raw(0, ends_at)) == tvb(ends_at, CRC_BYTES):uint()
    local frame = {
        tvb = tvb,
        pinfo = pinfo,
        tree = tree,
        tag = tvb(4, 4):uint(),
        channel = tvb(1, 1):bitfield(0, 4),
        -- nil when it is not to be believed
        body = good and (length > 0 and tvb(HEADER_BYTES, length) or tvb(0, 0)) or nil,
        -- the packet for IP
        packet = nil,
    }
    local words = DISSECT[kind](frame)
    tree:append_text(", " .. words)
    tree:add(f.check, tvb(18, 2))
    tree:add(f.check_status, tvb(18, 2), 1):set_generated()
    pinfo.cols.info = words
    if not good then
        tree:add_proto_expert_info(whole and e.crc or e.cut)
        if nbytes > HEADER_BYTES then
            tree:add(f.octets, tvb(HEADER_BYTES))
        end
        tree:add(f.crc_status, tvb(nbytes - CRC_BYTES), 0):set_generated()
        return nbytes
    end
    tree:add(f.crc, tvb(ends_at, CRC_BYTES))
    tree:add(f.crc_status, tvb(ends_at, CRC_BYTES), 1):set_generated()
    if nbytes > ends_at + CRC_BYTES then
        tree:add(f.padding, tvb(ends_at + CRC_BYTES))
    end
    if frame.packet then
        hand_over(frame.packet, pinfo, root, tree, words, e.packet)
    end
    return nbytes
end

function bare.dissector(tvb, pinfo, root)
    local nbytes = tvb:len()
    local length = nbytes - CRC_BYTES
    pinfo.cols.protocol = "BARE"
    if nbytes == 0 then
        pinfo.cols.info = "damaged: 0 octets: too short for a frame"
        return 0
    end
    local tree = root:add(bare, tvb())
    if length < 1 then
        tree:add_proto_expert_info(bare_e.short)
        tree:add(b.octets, tvb())
        pinfo.cols.info = "damaged: " .. nbytes .. " octets: too short for a frame"
        return nbytes
    end
    local good = crc32(tvb:raw(0, length)) == tvb(length, CRC_BYTES):uint()
    tree:add(b.crc, tvb(length, CRC_BYTES))
    tree:add(b.crc_status, tvb(length, CRC_BYTES), good and 1 or 0):set_generated()
    if not good then
        tree:add_proto_expert_info(bare_e.crc)
        tree:add(b.octets, tvb(0, length))
        pinfo.cols.info = "damaged: CRC failed"
        return nbytes
    end
    pinfo.cols.info = "packet of " .. length .. " bytes"
    hand_over(tvb(0, length), pinfo, root, tree, "packet of " .. length .. " bytes", bare_e.packet)
    return nbytes
end

-- link ARQ --------------------------------------------------------------------------------------------------

--- the frame whose packet IP was given, by session and number
local arq_given = {}

function arq.init()
    arq_given = {}
end

local ARQ_DATA_BYTES, ARQ_ACK_BYTES, ARQ_FRAGMENT_BYTES = 11, 15, 17

local function refuse_arq(tvb, pinfo, tree, what, words)
    tree:add_proto_expert_info(what)
    if tvb:len() > 0 then
        tree:add(a.octets, tvb())
    end
    pinfo.cols.info = "damaged: " .. words
    return tvb:len()
end

--- What is wrong with a fragment; nil: nothing.
local function arq_fault(tvb, size)
    if size < 1 then
        return "a fragment without octets"
    end
    local index, data, total, length = tvb(12, 1):uint(), tvb(13, 1):uint(), tvb(14, 1):uint(), tvb(15, 2):uint()
    if data < 1 or data > total or index >= total then
        return string.format("fragment %d of %d, %d suffice: cannot be", index, total, data)
    elseif size ~= math.floor((length + data - 1) / data) then
        return string.format("a fragment of %d octets is not one of %d of %d octets", size, data, length)
    end
end

local function dissect_fragment(tvb, pinfo, tree, ends_at, where)
    local size = ends_at - ARQ_FRAGMENT_BYTES
    local wrong = arq_fault(tvb, size)
    if wrong then
        return refuse_arq(tvb, pinfo, tree, arq_e.fragment, wrong)
    end
    tree:add(a.base, tvb(7, 4))
    for place, name in ipairs({ "copy", "index", "data", "total" }) do
        tree:add(a[name], tvb(10 + place, 1))
    end
    tree:add(a.length, tvb(15, 2))
    tree:add(a.fragment, tvb(ARQ_FRAGMENT_BYTES, size))
    local copy, index = tvb(11, 1):uint(), tvb(12, 1):uint()
    pinfo.cols.info = string.format("%s %d of %d of packet %d%s%s",
        index < tvb(13, 1):uint() and "fragment" or "FEC fragment",
        index + 1, tvb(14, 1):uint(), tvb(3, 4):uint(), where, copy > 0 and ", copy " .. copy or "")
    return tvb:len()
end

function arq.dissector(tvb, pinfo, root)
    local nbytes = tvb:len()
    local ends_at = nbytes - CRC_BYTES
    pinfo.cols.protocol = "ARQ"
    local tree = root:add(arq, tvb())
    if ends_at <= ARQ_DATA_BYTES then
        return refuse_arq(tvb, pinfo, tree, arq_e.short, nbytes .. " octets: too short for a frame")
    end
    local good = crc32(tvb:raw(0, ends_at)) == tvb(ends_at, CRC_BYTES):uint()
    tree:add(a.crc, tvb(ends_at, CRC_BYTES))
    tree:add(a.crc_status, tvb(ends_at, CRC_BYTES), good and 1 or 0):set_generated()
    if not good then
        return refuse_arq(tvb, pinfo, tree, arq_e.crc, "CRC failed")
    end
    local kind = tvb(0, 1):uint()
    if kind == 0xAF and ends_at ~= ARQ_ACK_BYTES then
        local words = string.format("an acknowledgement of %d octets: must be %d", nbytes, ARQ_ACK_BYTES + CRC_BYTES)
        return refuse_arq(tvb, pinfo, tree, arq_e.kind, words)
    elseif kind ~= 0xAF and kind ~= 0xA0 and kind ~= 0xA1 and kind ~= 0xB0 and kind ~= 0xB1 then
        return refuse_arq(tvb, pinfo, tree, arq_e.kind, string.format("unknown kind 0x%02x", kind))
    end
    tree:add(a.kind, tvb(0, 1))
    tree:add(a.session, tvb(1, 2))
    tree:add(a.seq, tvb(3, 4))
    local session, seq = tvb(1, 2):uint(), tvb(3, 4):uint()
    if kind == 0xAF then
        tree:add(a.before, tvb(7, 8))
        local more = 0
        for i = 7, 14 do
            local octet = tvb(i, 1):uint()
            while octet > 0 do
                more = more + band(octet, 1)
                octet = rshift(octet, 1)
            end
        end
        pinfo.cols.info = "ACK of " .. seq .. (more > 0 and (" and " .. more .. " before") or "")
        return nbytes
    end
    local where = kind % 2 == 1 and " of channel 1" or ""
    if kind >= 0xB0 then
        return dissect_fragment(tvb, pinfo, tree, ends_at, where)
    end
    tree:add(a.base, tvb(7, 4))
    local length = ends_at - ARQ_DATA_BYTES
    local words = "packet " .. seq .. where .. ", " .. length .. " bytes"
    pinfo.cols.info = words
    local key = session .. "/" .. seq
    arq_given[key] = arq_given[key] or pinfo.number
    if arq_given[key] == pinfo.number then
        hand_over(tvb(ARQ_DATA_BYTES, length), pinfo, root, tree, words, arq_e.packet)
    end
    return nbytes
end

-- slacp-adaptive ----------------------------------------------------------------------------------------------

--- the frame whose packet IP was given, by session and number
local adaptive_given = {}

function adaptive.init()
    adaptive_given = {}
end

local KIND_CODED, KIND_MARK, KIND_ADAPTIVE_ACK = 0xC2, 0xC4, 0xC5
local MARK_BYTES, DATA_AT, CODED_AT, BITMAPS_AT = 18, 16, 27, 14
local MAX_BITMAP_BYTES, MAX_INDEXES, MAX_WINDOW = 128, 128, 16384

local function refuse_adaptive(tvb, pinfo, tree, what, words)
    tree:add_proto_expert_info(what)
    tree:add(d.octets, tvb())
    pinfo.cols.info = "damaged: " .. words
    return tvb:len()
end

--- The bits of a string of octets, the first in the lowest bit of the first octet: a table of their places, ascending.
local function places(octets)
    local set = {}
    for at = 1, #octets do
        local octet, place = byte(octets, at), 8 * at - 8
        while octet > 0 do
            if band(octet, 1) == 1 then
                set[#set + 1] = place
            end
            octet, place = rshift(octet, 1), place + 1
        end
    end
    return set
end

--- Show a bitmap of what came before `newest`, and the holes in it; return how many came.
local function dissect_bitmap(range, tree, field, hole, newest)
    if range == nil then
        return 0
    end
    tree:add(field, range)
    local set, next_place = places(range:raw()), 0
    for _, place in ipairs(set) do
        while next_place < place do
            tree:add(hole, range, (newest - 1 - next_place) % NUMBERS):set_generated()
            next_place = next_place + 1
        end
        next_place = place + 1
    end
    return #set
end

local function dissect_adaptive_ack(tvb, pinfo, tree, ends_at)
    local frames, packets, size = tvb(12, 1):uint(), tvb(13, 1):uint(), ends_at - BITMAPS_AT
    if size ~= frames + packets or frames > MAX_BITMAP_BYTES or packets > MAX_BITMAP_BYTES then
        return refuse_adaptive(tvb, pinfo, tree, adaptive_e.body, string.format(
            "bitmaps of %d octets: must be %d and %d, %d at most", size, frames, packets, MAX_BITMAP_BYTES))
    end
    local of_frames = frames > 0 and tvb(BITMAPS_AT, frames) or nil
    local of_packets = packets > 0 and tvb(BITMAPS_AT + frames, packets) or nil
    if frames > 0 and tvb(BITMAPS_AT + frames - 1, 1):uint() == 0 or packets > 0 and tvb(ends_at - 1, 1):uint() == 0 then
        return refuse_adaptive(tvb, pinfo, tree, adaptive_e.body, "a bitmap has octets that tell nothing")
    end
    local tx = tvb(4, 4):uint()
    tree:add(d.kind, tvb(0, 1))
    tree:add(d.session, tvb(1, 2))
    tree:add(d.count, tvb(3, 1))
    tree:add(d.tx, tvb(4, 4))
    tree:add(d.top, tvb(8, 4))
    local more = dissect_bitmap(of_frames, tree, d.frames, d.lost, tx)
    dissect_bitmap(of_packets, tree, d.packets, d.missing, tvb(8, 4):uint())
    pinfo.cols.info = "ACK of transmission " .. tx .. (more > 0 and (" and " .. more .. " before") or "")
    return tvb:len()
end

--- What is wrong with a frame that is no acknowledgement; nil: nothing.
local function adaptive_fault(tvb, kind, ends_at)
    if kind == KIND_MARK then
        if tvb:len() ~= MARK_BYTES then
            return string.format("a mark of %d octets: must be %d", tvb:len(), MARK_BYTES)
        end
    elseif kind >= KIND_CODED then
        -- the length of a packet, at least
        if ends_at < CODED_AT + 2 then
            return "a combination without octets"
        elseif tvb(25, 1):bitfield(7, 1) == 0 then
            return "a combination without its first member"
        elseif tvb(26, 1):uint() >= MAX_INDEXES then
            return string.format("combination %d: must be below %d", tvb(26, 1):uint(), MAX_INDEXES)
        end
    elseif ends_at <= DATA_AT then
        return "a packet without octets"
    elseif tvb(14, 2):uint() >= MAX_WINDOW then
        return string.format("packet %d after the base: must be below %d", tvb(14, 2):uint(), MAX_WINDOW)
    end
end

function adaptive.dissector(tvb, pinfo, root)
    local nbytes = tvb:len()
    local ends_at = nbytes - CRC_BYTES
    pinfo.cols.protocol = "ADAPTIVE"
    if nbytes == 0 then
        pinfo.cols.info = "damaged: 0 octets: too short for a frame"
        return 0
    end
    local tree = root:add(adaptive, tvb())
    if nbytes < MARK_BYTES then
        return refuse_adaptive(tvb, pinfo, tree, adaptive_e.short, nbytes .. " octets: too short for a frame")
    end
    local good = crc32(tvb:raw(0, ends_at)) == tvb(ends_at, CRC_BYTES):uint()
    tree:add(d.crc, tvb(ends_at, CRC_BYTES))
    tree:add(d.crc_status, tvb(ends_at, CRC_BYTES), good and 1 or 0):set_generated()
    if not good then
        return refuse_adaptive(tvb, pinfo, tree, adaptive_e.crc, "CRC failed")
    end
    local kind = tvb(0, 1):uint()
    if kind == KIND_ADAPTIVE_ACK then
        return dissect_adaptive_ack(tvb, pinfo, tree, ends_at)
    elseif kind < 0xC0 or kind > KIND_MARK then
        return refuse_adaptive(tvb, pinfo, tree, adaptive_e.kind, string.format("unknown kind 0x%02x", kind))
    end
    local wrong = adaptive_fault(tvb, kind, ends_at)
    if wrong then
        return refuse_adaptive(tvb, pinfo, tree, adaptive_e.body, wrong)
    end
    local session, tx, from = tvb(1, 2):uint(), tvb(3, 4):uint(), tvb(7, 4):uint()
    tree:add(d.kind, tvb(0, 1))
    tree:add(d.session, tvb(1, 2))
    tree:add(d.tx, tvb(3, 4))
    tree:add(d.base, tvb(7, 4))
    tree:add(d.patience, tvb(11, 2))
    tree:add(d.heard, tvb(13, 1))
    local words = "transmission " .. tx .. ": "
    if kind == KIND_MARK then
        pinfo.cols.info = words .. "nothing below packet " .. from .. " comes"
        return nbytes
    end
    local where = kind % 2 == 1 and " of channel 1" or ""
    if kind >= KIND_CODED then
        tree:add(d.first, tvb(14, 4))
        tree:add(d.members, tvb(18, 8))
        local members = {}
        for at, place in ipairs(places(tvb:raw(18, 8):reverse())) do
            members[at] = (tvb(14, 4):uint() + place) % NUMBERS
            tree:add(d.member, tvb(14, 12), members[at]):set_generated()
            members[at] = string.format("%.0f", members[at])
        end
        tree:add(d.index, tvb(26, 1))
        tree:add(d.symbol, tvb(CODED_AT, ends_at - CODED_AT))
        pinfo.cols.info = words .. "combination of packets " .. table.concat(members, ", ") .. where
        return nbytes
    end
    local seq, length = (from + tvb(14, 2):uint()) % NUMBERS, ends_at - DATA_AT
    tree:add(d.seq, tvb(7, 9), seq):set_generated()
    words = string.format("%spacket %.0f%s, %d bytes", words, seq, where, length)
    pinfo.cols.info = words
    local key = string.format("%x/%.0f", session, seq)
    adaptive_given[key] = adaptive_given[key] or pinfo.number
    if adaptive_given[key] == pinfo.number then
        hand_over(tvb(DATA_AT, length), pinfo, root, tree, words, adaptive_e.packet)
    end
    return nbytes
end

-- no preference has to be set for these
local encapsulations = DissectorTable.get("wtap_encap")
encapsulations:add(wtap.USER0, slacp)
encapsulations:add(wtap.USER1, bare)
encapsulations:add(wtap.USER5, arq)
encapsulations:add(wtap.USER6, adaptive)
